// SPDX-License-Identifier: MIT
// A copy would let every client pass twice.
// says: deleted
#include <penstock/penstock.hpp>

auto copy(const penstock::Limiter<penstock::TokenBucket>& limiter) {
    return penstock::Limiter<penstock::TokenBucket>(limiter);
}
