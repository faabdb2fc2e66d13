// SPDX-License-Identifier: MIT
// A check whose answer nobody looks at.
// says: ignoring return
#include <penstock/penstock.hpp>

void serve(penstock::Limiter<penstock::TokenBucket>& limiter) {
    limiter.check("user:42");
}
