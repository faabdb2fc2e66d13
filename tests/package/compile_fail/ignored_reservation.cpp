// SPDX-License-Identifier: MIT
// A turn that nobody waits for.
// says: ignoring return
#include <penstock/penstock.hpp>

void serve(penstock::Limiter<penstock::TokenBucket>& limiter) {
    limiter.reserve("user:42", std::chrono::microseconds{1});
}
