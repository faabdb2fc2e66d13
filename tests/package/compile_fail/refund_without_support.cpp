// SPDX-License-Identifier: MIT
// An algorithm that gives nothing back.
// says: penstock: refund needs an algorithm that has a `refund`
#include <penstock/penstock.hpp>

struct Once {
    struct State {
        bool taken;
    };

    static penstock::Decision step(
        State&, const penstock::Plan<Once>&, penstock::Micros, std::uint64_t, penstock::Micros) noexcept;
};

bool serve(penstock::Limiter<Once>& limiter) {
    return limiter.refund("user:42", 1).allowed;
}
