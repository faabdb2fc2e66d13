// SPDX-License-Identifier: MIT
// Nothing stays in the store for longer than it matters.
#include "../support/fault.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Layout;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::TokenBucket;
using support::RedisClient;
using support::RedisServer;

RedisStorage storage_of(const RedisServer& server, Layout layout) {
    return RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(server.port()),
                         .timeout = 10s,
                         .layout = layout,
                         .expected_entries = 1000,
                         .on_failure = penstock::Deny{}}};
}

TEST_CASE("when the clients go the store is empty again, but for the meta of the packed layout") {
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        const RedisServer server;
        RedisClient client(server.port());
        Limiter limiter{TokenBucket{.capacity = 10, .refill = penstock::per_second(1000)}, storage_of(server, layout)};
        for (int i = 0; i < 500; ++i) {
            CHECK(limiter.check("client " + std::to_string(i), 10).allowed);
        }
        const std::int64_t rest = layout == Layout::packed ? 1 : 0;
        CHECK(client("DBSIZE").integer > rest);
        CHECK(fault::await([&] { return client("DBSIZE").integer == rest; }));
        CHECK(limiter.check("client 1", 10).allowed);
    }
}

TEST_CASE("every key of the store has a TTL after every operation") {
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        const RedisServer server;
        RedisClient client(server.port());
        Limiter limiter{penstock::AllOf{TokenBucket{.capacity = 10, .refill = penstock::per_hour(1)},
                                        TokenBucket{.capacity = 20, .refill = penstock::per_day(1)}},
                        storage_of(server, layout)};
        const auto check_lifetimes = [&] {
            for (const auto& key : client("KEYS", "*").items) {
                CHECK(client("PTTL", key.text).integer > 0);
            }
        };
        for (int i = 0; i < 20; ++i) {
            const std::string key = "client " + std::to_string(i % 3);
            static_cast<void>(limiter.check(key, 2));
            check_lifetimes();
            static_cast<void>(limiter.charge(key, 1));
            check_lifetimes();
            static_cast<void>(limiter.refund(key, 2));
            check_lifetimes();
            static_cast<void>(limiter.reserve(key, 100h, 1));
            check_lifetimes();
        }
    }
}

}  // namespace
