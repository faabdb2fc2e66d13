// SPDX-License-Identifier: MIT
// The time of a server that is not there.
// says: penstock: ServerClock needs a storage with a server, such as RedisStorage
#include <penstock/penstock.hpp>

using Local = penstock::Limiter<penstock::TokenBucket, penstock::LocalStorage, penstock::ServerClock>;

bool serve(Local& limiter) {
    return limiter.check("user:42").allowed;
}
