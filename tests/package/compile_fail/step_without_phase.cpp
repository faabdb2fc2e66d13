// SPDX-License-Identifier: MIT
// A step that was written for other parameters.
// says: penstock: an algorithm needs `static Decision step(
#include <penstock/penstock.hpp>

struct Once {
    struct State {
        bool taken;
    };

    static penstock::Decision step(State&, const penstock::Plan<Once>&, penstock::Micros, std::uint64_t) noexcept;
};

bool serve(penstock::Limiter<Once>& limiter) {
    return limiter.check("user:42").allowed;
}
