// SPDX-License-Identifier: MIT
// A storage that cannot be bound to an algorithm.
// says: penstock: a storage needs a class template `Bound<Algorithm>`
#include <penstock/penstock.hpp>

struct Nowhere {};

bool serve(penstock::Limiter<penstock::TokenBucket, Nowhere>& limiter) {
    return limiter.check("user:42").allowed;
}
