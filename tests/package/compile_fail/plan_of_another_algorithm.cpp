// SPDX-License-Identifier: MIT
// A plan fits the algorithm of its limiter only.
// says: no matching
#include <penstock/penstock.hpp>

bool serve(penstock::Limiter<penstock::TokenBucket>& limiter, const penstock::Plan<penstock::FixedWindow>& plan) {
    return limiter.check("user:42", plan).allowed;
}
