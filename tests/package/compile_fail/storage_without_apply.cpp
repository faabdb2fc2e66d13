// SPDX-License-Identifier: MIT
// A storage that decides nothing.
// says: penstock: a storage's Bound<Algorithm> needs `StoreError apply(
#include <penstock/penstock.hpp>

struct Nowhere {
    template <class Algorithm>
    struct Bound {
        explicit Bound(const Nowhere&);
    };
};

bool serve(penstock::Limiter<penstock::TokenBucket, Nowhere>& limiter) {
    return limiter.check("user:42").allowed;
}
