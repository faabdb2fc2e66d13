// SPDX-License-Identifier: MIT
// More limits than a slot has room for.
// says: penstock: an algorithm's State must be at most
#include <penstock/penstock.hpp>

using Bucket = penstock::TokenBucket;
using Six = penstock::AllOf<Bucket, Bucket, Bucket, Bucket, Bucket, Bucket>;

bool serve(penstock::Limiter<Six>& limiter) {
    return limiter.check("user:42").allowed;
}
