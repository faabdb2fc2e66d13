// SPDX-License-Identifier: MIT
// A storage that may throw, in calls that may not.
// says: penstock: a storage's apply must be noexcept and return penstock::StoreError
#include <penstock/penstock.hpp>

struct Nowhere {
    template <class Algorithm>
    struct Bound {
        explicit Bound(const Nowhere&);

        penstock::StoreError apply(penstock::Op,
                                   std::string_view,
                                   const penstock::Plan<Algorithm>&,
                                   penstock::Micros,
                                   std::uint64_t,
                                   std::chrono::microseconds,
                                   penstock::Decision&);
    };
};

bool serve(penstock::Limiter<penstock::TokenBucket, Nowhere>& limiter) {
    return limiter.check("user:42").allowed;
}
