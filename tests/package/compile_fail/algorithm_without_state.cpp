// SPDX-License-Identifier: MIT
// An algorithm that remembers nothing.
// says: penstock: an algorithm needs a type `State`
#include <penstock/penstock.hpp>

struct Once {};

bool serve(penstock::Limiter<Once>& limiter) {
    return limiter.check("user:42").allowed;
}
