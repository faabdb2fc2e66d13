// SPDX-License-Identifier: MIT
#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <type_traits>

namespace {

TEST_CASE("one header brings the core and Redis") {
    using Fleet = penstock::Limiter<penstock::TokenBucket, penstock::RedisStorage>;
    CHECK(
        std::is_same_v<Fleet, penstock::Limiter<penstock::TokenBucket, penstock::RedisStorage, penstock::ServerClock>>);
    CHECK(penstock::Storage<penstock::RedisStorage, penstock::TokenBucket>);
}

}  // namespace
