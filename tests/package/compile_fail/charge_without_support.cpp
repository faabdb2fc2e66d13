// SPDX-License-Identifier: MIT
// An algorithm that takes nothing past its limit.
// says: penstock: charge needs an algorithm that has a `charge`
#include <penstock/penstock.hpp>

struct Once {
    struct State {
        bool taken;
    };

    static penstock::Decision step(
        State&, const penstock::Plan<Once>&, penstock::Micros, std::uint64_t, penstock::Micros) noexcept;
};

bool serve(penstock::Limiter<Once>& limiter) {
    return limiter.charge("user:42", 1).allowed;
}
