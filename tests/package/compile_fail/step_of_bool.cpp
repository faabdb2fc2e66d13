// SPDX-License-Identifier: MIT
// A step that answers yes or no, and leaves it to the client to guess when to come back.
// says: penstock: an algorithm's step must return penstock::Decision
#include <penstock/penstock.hpp>

struct Once {
    struct State {
        bool taken;
    };

    static bool step(State&, const penstock::Plan<Once>&, penstock::Micros, std::uint64_t, penstock::Micros) noexcept;
};

bool serve(penstock::Limiter<Once>& limiter) {
    return limiter.check("user:42").allowed;
}
