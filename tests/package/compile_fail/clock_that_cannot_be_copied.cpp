// SPDX-License-Identifier: MIT
// A clock that a limiter cannot have a copy of.
// says: penstock: a clock must be copyable
#include <penstock/penstock.hpp>

struct Clock {
    Clock(const Clock&) = delete;
    std::chrono::microseconds now() const noexcept;
};

bool serve(penstock::Limiter<penstock::TokenBucket, penstock::LocalStorage, Clock>& limiter) {
    return limiter.check("user:42").allowed;
}
