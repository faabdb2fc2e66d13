// SPDX-License-Identifier: MIT
// An algorithm that decides nothing.
// says: penstock: an algorithm needs `static Decision step(
#include <penstock/penstock.hpp>

struct Once {
    struct State {
        bool taken;
    };
};

bool serve(penstock::Limiter<Once>& limiter) {
    return limiter.check("user:42").allowed;
}
