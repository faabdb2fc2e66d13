// SPDX-License-Identifier: MIT
// A step that may throw, in calls that may not.
// says: penstock: an algorithm's step must be noexcept
#include <penstock/penstock.hpp>

struct Once {
    struct State {
        bool taken;
    };

    static penstock::Decision step(
        State&, const penstock::Plan<Once>&, penstock::Micros, std::uint64_t, penstock::Micros);
};

bool serve(penstock::Limiter<Once>& limiter) {
    return limiter.check("user:42").allowed;
}
