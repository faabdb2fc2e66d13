// SPDX-License-Identifier: MIT
// A clock of another unit: limits would be off by a thousand.
// says: penstock: a clock's now() must return std::chrono::microseconds
#include <penstock/penstock.hpp>

struct Clock {
    std::chrono::milliseconds now() const noexcept;
};

bool serve(penstock::Limiter<penstock::TokenBucket, penstock::LocalStorage, Clock>& limiter) {
    return limiter.check("user:42").allowed;
}
