// SPDX-License-Identifier: MIT
// A clock that cannot be asked.
// says: penstock: a clock needs a member function `now() const`
#include <penstock/penstock.hpp>

struct Clock {
    std::chrono::microseconds time{0};
};

bool serve(penstock::Limiter<penstock::TokenBucket, penstock::LocalStorage, Clock>& limiter) {
    return limiter.check("user:42").allowed;
}
