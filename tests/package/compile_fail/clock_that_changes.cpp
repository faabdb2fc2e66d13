// SPDX-License-Identifier: MIT
// A clock that changes by being looked at, from many threads at once.
// says: penstock: a clock needs a member function `now() const`
#include <penstock/penstock.hpp>

struct Clock {
    std::chrono::microseconds now() noexcept;
};

bool serve(penstock::Limiter<penstock::TokenBucket, penstock::LocalStorage, Clock>& limiter) {
    return limiter.check("user:42").allowed;
}
