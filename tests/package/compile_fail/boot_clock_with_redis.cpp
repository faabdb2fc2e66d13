// SPDX-License-Identifier: MIT
// Gateways whose clocks count from the boot of each of them, over one store.
// says: penstock: this clock counts from the boot of a machine
#include <penstock/penstock_redis.hpp>

using Fleet = penstock::Limiter<penstock::TokenBucket, penstock::RedisStorage, penstock::SteadyClock>;

bool serve(Fleet& limiter) {
    return limiter.check("user:42").allowed;
}
