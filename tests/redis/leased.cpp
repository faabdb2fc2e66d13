// SPDX-License-Identifier: MIT
// Leases over a real server: what threads take together stays within the limit, and what they leave comes back.
#include <penstock/guard/leased.hpp>

#include "../support/fault.hpp"
#include "../support/print.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <penstock/guard/guarded.hpp>
#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Guarded;
using penstock::Layout;
using penstock::Leased;
using penstock::LeasedOptions;
using penstock::LeasedStats;
using penstock::Limiter;
using penstock::Op;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::RedisServer;

// Both give nothing back in the time of a test.
constexpr TokenBucket bucket{.capacity = 20'000, .refill = penstock::per_hour(1)};
constexpr LeasedOptions of_hundred{.size = 100, .gateways = 2, .idle_return = 1h, .return_timeout = 20s};

RedisStorage storage_of(const RedisServer& server, Layout layout = Layout::packed) {
    return RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(server.port()),
                         .timeout = 20s,
                         .layout = layout,
                         .expected_entries = 1000,
                         .on_failure = penstock::Deny{}}};
}

/// Checks until so many in a row were rejected.
template <class AnyLimiter>
std::uint64_t use_up(AnyLimiter& limiter, const std::string& key) {
    std::uint64_t allowed = 0;
    for (int rejections = 0; rejections < 100;) {
        const bool passes = limiter.check(key).allowed;
        allowed += passes ? 1 : 0;
        rejections = passes ? 0 : rejections + 1;
    }
    return allowed;
}

TEST_CASE("threads of two gateways are admitted within the limit, and the server is seldom asked") {
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        const RedisServer server;
        using Gateway = Limiter<TokenBucket, Leased<RedisStorage>>;
        Gateway one(bucket, Leased{storage_of(server, layout), of_hundred});
        Gateway two(bucket, Leased{storage_of(server, layout), of_hundred});
        const std::vector<std::uint64_t> allowed =
            threads::results_of(2, [&](std::size_t i) { return use_up(i == 0 ? one : two, "key"); });
        CHECK(allowed[0] + allowed[1] <= bucket.capacity);
        CHECK(allowed[0] + allowed[1] >= bucket.capacity - 200);
        const std::uint64_t asks = one.storage().stats().asks + two.storage().stats().asks;
        CHECK(asks < bucket.capacity / 10);
    }
}

TEST_CASE("threads of one gateway are admitted exactly the limit, and what they left is back when it ends") {
    const RedisServer server;
    Limiter plain{bucket, storage_of(server)};
    std::atomic<std::uint64_t> used{0};
    {
        Limiter gateway{bucket, Leased{storage_of(server), of_hundred}};
        threads::together(2, [&](std::size_t i) {
            for (int n = 0; n < 5000; ++n) {
                used += gateway.check("shared").allowed ? 1 : 0;
                used += gateway.check(i == 0 ? "first" : "second").allowed ? 1 : 0;
            }
        });
        const LeasedStats stats = gateway.storage().stats();
        CHECK(stats.taken <= used + 300);
        CHECK(stats.returned + stats.dropped == 0);
    }
    CHECK(used == 20'000);
    CHECK(plain.peek("shared", 0).remaining == bucket.capacity - 10'000);
    CHECK(plain.peek("first", 0).remaining == bucket.capacity - 5000);
    CHECK(plain.peek("second", 0).remaining == bucket.capacity - 5000);
}

TEST_CASE("the leases of many clients are given back at the end, in less than a round trip each") {
    const RedisServer server;
    constexpr int clients = 3000;
    const auto key_of = [](int i) { return "client " + std::to_string(i); };
    Limiter plain{bucket, storage_of(server)};
    std::optional<Limiter<TokenBucket, Leased<RedisStorage>>> gateway;
    gateway.emplace(bucket, Leased{storage_of(server), of_hundred});
    for (int i = 0; i < clients; ++i) {
        REQUIRE(gateway->check(key_of(i)).allowed);
        REQUIRE(gateway->check(key_of(i)).allowed);
    }
    CHECK(plain.peek(key_of(1), 0).remaining == bucket.capacity - 3);
    gateway.reset();
    for (int i = 0; i < clients; ++i) {
        REQUIRE(plain.peek(key_of(i), 0).remaining == bucket.capacity - 2);
    }
}

TEST_CASE("checks that do not wait share leases with those that do") {
    const RedisServer server;
    std::atomic<std::uint64_t> told{0};
    std::atomic<std::uint64_t> allowed{0};
    constexpr std::uint64_t checks = 20'000;
    Limiter plain{bucket, storage_of(server)};
    {
        Limiter gateway{bucket, Leased{Guarded{storage_of(server)}, of_hundred}};
        threads::together(2, [&](std::size_t i) {
            for (std::uint64_t n = 0; n < checks / 2; ++n) {
                if (i == 0) {
                    allowed += gateway.check("key").allowed ? 1 : 0;
                    ++told;
                } else {
                    gateway.async_check("key", 1, [&](const Decision& decision) {
                        allowed += decision.allowed && decision.source != Source::fail_open ? 1 : 0;
                        ++told;
                    });
                }
            }
        });
        CHECK(fault::await([&] { return told == checks; }));
        CHECK(allowed <= bucket.capacity);
    }
    CHECK(plain.peek("key", 0).remaining == bucket.capacity - allowed);
}

TEST_CASE("a limiter that ends while the server hangs waits no longer than it may") {
    const RedisServer server;
    std::optional<Limiter<TokenBucket, Leased<RedisStorage>>> gateway;
    RedisStorage::Options options{.url = "redis://127.0.0.1:" + std::to_string(server.port()), .timeout = 300ms};
    gateway.emplace(bucket, Leased{RedisStorage{options}, {.size = 100, .return_timeout = 30s}});
    CHECK(fault::await([&] { return gateway->check("key").source == Source::store; }));
    while (gateway->check("key").source != Source::lease) {
    }
    server.stop();
    const auto begin = fault::Clock::now();
    gateway.reset();
    CHECK(fault::Clock::now() - begin < 300ms + 2s);
    server.resume();
}

TEST_CASE("a limiter may be destroyed while checks that do not wait are under way") {
    const RedisServer server;
    for (int round = 0; round < 50; ++round) {
        std::atomic<int> told{0};
        {
            Limiter gateway{bucket, Leased{storage_of(server), of_hundred}};
            for (int i = 0; i < 100; ++i) {
                gateway.async_check("key " + std::to_string(i % 7), 1, [&](const Decision&) { ++told; });
            }
        }
        CHECK(told == 100);
    }
}

}  // namespace
