// SPDX-License-Identifier: MIT
// A storage whose options never reach what is bound.
// says: penstock: a storage's Bound<Algorithm> must be constructible from the storage
#include <penstock/penstock.hpp>

struct Nowhere {
    template <class Algorithm>
    struct Bound {};
};

bool serve(penstock::Limiter<penstock::TokenBucket, Nowhere>& limiter) {
    return limiter.check("user:42").allowed;
}
