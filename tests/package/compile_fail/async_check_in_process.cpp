// SPDX-License-Identifier: MIT
// Nothing to wait for.
// says: penstock: async_check needs a storage that is asked over a network
#include <penstock/penstock.hpp>

void serve(penstock::Limiter<penstock::TokenBucket>& limiter) {
    limiter.async_check("user:42", 1, [](penstock::Decision) {});
}
