// SPDX-License-Identifier: MIT
// The least a user writes: one limiter, one check.
#include <penstock/penstock.hpp>

int main() {
    penstock::Limiter limiter{penstock::TokenBucket{.capacity = 1, .refill = penstock::per_hour(1)}};
    const bool first = limiter.check("user:42").allowed;
    const bool second = limiter.check("user:42").allowed;
    return first && !second ? 0 : 1;
}
