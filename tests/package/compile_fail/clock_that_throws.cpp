// SPDX-License-Identifier: MIT
// A clock that may throw, in calls that may not.
// says: penstock: a clock's now() must be noexcept
#include <penstock/penstock.hpp>

struct Clock {
    std::chrono::microseconds now() const;
};

bool serve(penstock::Limiter<penstock::TokenBucket, penstock::LocalStorage, Clock>& limiter) {
    return limiter.check("user:42").allowed;
}
