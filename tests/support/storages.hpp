// SPDX-License-Identifier: MIT
// The storages that every case is run over: TEST_CASE_TEMPLATE("...", Storage, PENSTOCK_STORAGES_UNDER_TEST). Compiled
// with PENSTOCK_TEST_REDIS, the same cases run over a real redis-server.
#ifndef PENSTOCK_TESTS_SUPPORT_STORAGES_HPP
#define PENSTOCK_TESTS_SUPPORT_STORAGES_HPP

#include <doctest/doctest.h>

#ifdef PENSTOCK_TEST_REDIS

#include "redis_server.hpp"

#include <penstock/storage/redis.hpp>

#include <chrono>
#include <string>

namespace under_test {

/// One storage: `fresh()` gives one that no other limiter of the run uses.
template <penstock::Layout AnyLayout>
struct Redis {
    static constexpr unsigned slowness = 20;  // what takes long is done so many times less often

    static penstock::RedisStorage fresh() {
        static const support::RedisServer server;
        static int count = 0;
        return penstock::RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(server.port()),
                                       .timeout = std::chrono::seconds{20},
                                       .prefix = "test-" + std::to_string(++count),
                                       .layout = AnyLayout,
                                       .expected_entries = 1000,
                                       .on_failure = penstock::Deny{}}};
    }
};

using Packed = Redis<penstock::Layout::packed>;
using PerKey = Redis<penstock::Layout::per_key>;

}  // namespace under_test

TYPE_TO_STRING_AS("RedisStorage, packed", under_test::Packed);
TYPE_TO_STRING_AS("RedisStorage, a key each", under_test::PerKey);

#define PENSTOCK_STORAGES_UNDER_TEST under_test::Packed, under_test::PerKey

#elif defined(PENSTOCK_TEST_GUARDS)

#include "nested.hpp"

namespace under_test {

struct Nested {
    static constexpr unsigned slowness = 1;

    static support::Nested fresh() { return support::Nested(); }
};

}  // namespace under_test

TYPE_TO_STRING_AS("LocalStorage under two guards", under_test::Nested);

#define PENSTOCK_STORAGES_UNDER_TEST under_test::Nested

#else

#include <penstock/storage/local.hpp>

namespace under_test {

/// One storage: `fresh()` gives one that no other limiter of the run uses.
struct Local {
    static constexpr unsigned slowness = 1;

    static penstock::LocalStorage fresh() { return penstock::LocalStorage{{.max_keys = 10'000, .seed = 1}}; }
};

}  // namespace under_test

TYPE_TO_STRING_AS("LocalStorage", under_test::Local);

#define PENSTOCK_STORAGES_UNDER_TEST under_test::Local

#endif

#endif  // PENSTOCK_TESTS_SUPPORT_STORAGES_HPP
