// SPDX-License-Identifier: MIT
// Guards over a real server: what is remembered, divided and shed when the counts are those of a fleet.
#include "../support/await.hpp"
#include "../support/decisions.hpp"
#include "../support/print.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <penstock/guard/denied_cache.hpp>
#include <penstock/guard/guarded.hpp>
#include <penstock/guard/shed.hpp>
#include <penstock/guard/split.hpp>
#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Check;
using penstock::Decision;
using penstock::DeniedCache;
using penstock::FixedWindow;
using penstock::Guarded;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::Priority;
using penstock::RedisStorage;
using penstock::Shed;
using penstock::Source;
using penstock::Split;
using penstock::TokenBucket;
using support::allowed;
using support::await;
using support::RedisServer;
using support::rejected;

RedisStorage storage_of(const RedisServer& server) {
    return RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(server.port()),
                         .timeout = 20s,
                         .expected_entries = 1000,
                         .on_failure = penstock::Deny{}}};
}

Decision cached(Decision decision) {
    decision.source = Source::denied_cache;
    return decision;
}

bool is_hot(std::string_view key) {
    return key == "hot";
}

// DeniedCache

TEST_CASE("a limit that is raised and a client that is reset count at once, though the rejection was remembered") {
    const RedisServer server;
    Limiter limiter{FixedWindow{.limit = 10, .window = 1h}, DeniedCache{storage_of(server)}, ManualClock{}};
    for (std::uint64_t left = 10; left-- > 0;) {
        CHECK(limiter.check("client") == allowed(10, left, 1h));
    }
    CHECK(limiter.check("client") == rejected(10, 0, 1h, 1h));
    CHECK(limiter.check("client") == cached(rejected(10, 0, 1h, 1h)));
    limiter.configure({.limit = 20, .window = 1h});
    CHECK(limiter.check("client") == allowed(20, 9, 1h));
    CHECK(limiter.check("client", 9) == allowed(20, 0, 1h));
    CHECK_FALSE(limiter.check("client").allowed);
    CHECK_FALSE(limiter.check("client").allowed);
    limiter.reset("client");
    CHECK(limiter.check("client") == allowed(20, 19, 1h));
}

TEST_CASE("as many checks pass and as many do not, whoever answers them") {
    const RedisServer server;
    Limiter limiter{FixedWindow{.limit = 4, .window = 60s}, DeniedCache{storage_of(server)}, ManualClock{}};
    int passed = 0;
    for (int i = 0; i < 10; ++i) {
        passed += limiter.check("client").allowed ? 1 : 0;
    }
    CHECK(passed == 4);
    CHECK(limiter.storage().stats().hits == 5);
    CHECK(limiter.storage().stats().misses == 5);
    CHECK(limiter.peek("client") == rejected(4, 0, 60s, 60s));
}

TEST_CASE("by the server's time a client passes when it was told, and the store is hardly asked") {
    const RedisServer server;
    Limiter limiter{TokenBucket{.capacity = 1, .refill = penstock::per(1, 400ms)}, DeniedCache{storage_of(server)}};
    CHECK(limiter.check("client").allowed);
    std::chrono::microseconds least = 400ms;
    std::uint64_t rejections = 0;
    CHECK(await([&] {
        const Decision decision = limiter.check("client");
        if (!decision.allowed) {
            ++rejections;
            CHECK(decision.retry_after <= least);
            least = decision.retry_after;
        }
        return decision.allowed;
    }));
    // At least one from the store; it is asked again as soon as what it said is over.
    CHECK(limiter.storage().stats().misses <= 10);
    CHECK(limiter.storage().stats().hits + 10 >= rejections);
}

TEST_CASE("handlers are told of rejections without a round trip") {
    const RedisServer server;
    Limiter limiter{FixedWindow{.limit = 1, .window = 1h}, DeniedCache{Guarded{storage_of(server)}}, ManualClock{}};
    CHECK(limiter.check("client").allowed);
    std::atomic<int> told{0};
    limiter.async_check("client", 1, [&](const Decision& decision) { told += decision.allowed ? 100 : 1; });
    REQUIRE(await([&] { return told == 1; }));
    const support::Pause pause(server);
    limiter.async_check("client", 1, [&](const Decision& decision) {
        CHECK(decision == cached(rejected(1, 0, 1h, 1h)));
        ++told;
    });
    CHECK(told == 2);
}

// Split

/// How many checks pass until long none does.
template <class AnyLimiter>
std::uint64_t admitted(AnyLimiter& limiter) {
    std::uint64_t count = 0;
    for (int rejections = 0; rejections < 200;) {
        const bool passed = limiter.check("hot").allowed;
        count += passed ? 1 : 0;
        rejections += passed ? 0 : 1;
    }
    return count;
}

TEST_CASE("a split client is counted exactly, over two limiters and eight threads") {
    const RedisServer server;
    const FixedWindow window{.limit = 500, .window = 24h};
    const ManualClock clock;
    Limiter first{window, Split{storage_of(server), {.is_hot = is_hot}}, clock};
    Limiter second{window, Split{storage_of(server), {.is_hot = is_hot}}, clock};
    const auto counts = threads::results_of(8, [&](std::size_t i) { return admitted(i < 4 ? first : second); });
    CHECK(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) == 500);
    CHECK(first.peek("hot") == rejected(500, 0, 24h, 24h));
    CHECK(second.refund("hot", 20) == allowed(500, 20, 24h));
    CHECK(admitted(first) == 20);
    second.reset("hot");
    CHECK(first.peek("hot", 0) == allowed(500, 500, 0s));
}

TEST_CASE("handlers of a split client are told once each, and the limit holds") {
    const RedisServer server;
    Limiter limiter{
        FixedWindow{.limit = 100, .window = 24h}, Split{storage_of(server), {.is_hot = is_hot}}, ManualClock{}};
    std::atomic<std::uint64_t> told{0};
    std::atomic<std::uint64_t> passed{0};
    for (int i = 0; i < 1000; ++i) {
        limiter.async_check("hot", 1, [&](const Decision& decision) {
            passed += decision.allowed ? 1 : 0;
            ++told;
        });
    }
    REQUIRE(await([&] { return told == 1000; }));
    CHECK(passed + limiter.peek("hot", 0).remaining == 100);
}

TEST_CASE("a limiter of a split client ends while its handlers ask once more") {
    const RedisServer server;
    const RedisStorage storage = storage_of(server);
    for (int round = 0; round < 50; ++round) {
        const auto told = std::make_shared<std::atomic<int>>(0);
        {
            // Every other limiter is the last to use its connection.
            Limiter limiter{FixedWindow{.limit = 8, .window = 24h},
                            Split{round % 2 == 0 ? storage : storage_of(server), {.is_hot = is_hot}},
                            ManualClock{}};
            for (int i = 0; i < 100; ++i) {
                limiter.async_check("hot", 1, [told](const Decision&) { ++*told; });
            }
            static_cast<void>(limiter.check("hot"));
        }
        CHECK(await([&] { return *told == 100; }));
    }
}

// Shed

TEST_CASE("while a server hangs the checks of low priority are not sent, and are again when it goes on") {
    const RedisServer server;
    for (const bool deny : {false, true}) {
        const Shed shed{storage_of(server), {.in_flight = 10}};
        const Shed strict{storage_of(server), {.in_flight = 10, .on_shed = penstock::Deny{}}};
        Limiter limiter{FixedWindow{.limit = 1000, .window = 24h}, deny ? strict : shed, ManualClock{}};
        limiter.reset("client");
        const Check low{.key = "client", .cost = 1, .priority = Priority::low};
        const Check high{.key = "client", .cost = 1, .priority = Priority::high};
        std::atomic<int> told{0};
        {
            const support::Pause pause(server);
            for (int i = 0; i < 20; ++i) {
                limiter.async_check(i % 2 == 0 ? high : Check{.key = "client"}, [&](const Decision& decision) {
                    told += decision.source == Source::store && decision.allowed ? 1 : 0;
                });
            }
            CHECK(limiter.storage().stats().in_flight == 20);
            int at_once = 0;
            for (int i = 0; i < 50; ++i) {
                const Decision decision = limiter.check(low);
                CHECK(decision.source == Source::shed);
                CHECK(decision.allowed != deny);
                limiter.async_check(low, [&](const Decision& shed_too) { at_once += shed_too == decision ? 1 : 0; });
            }
            CHECK(at_once == 50);
            CHECK(told == 0);
            CHECK(limiter.storage().stats().shed == 100);
        }
        REQUIRE(await([&] { return told == 20; }));
        CHECK(limiter.storage().stats().in_flight == 0);
        CHECK(limiter.check(low) == allowed(1000, 979, 24h));
    }
}

/// Handlers ask once more while their limiter ends; all are told.
template <class Guard>
void check_that_who_asks_while_it_ends_is_told(const RedisServer& server, Guard guard) {
    constexpr int asked = 100;
    std::atomic<int> told{0};
    {
        const support::Pause pause(server);
        Limiter limiter{TokenBucket{.capacity = 1000, .refill = penstock::per_hour(1)}, guard(storage_of(server))};
        for (int i = 0; i < asked; ++i) {
            limiter.async_check("key", 1, [&](const Decision&) {
                ++told;
                limiter.async_check("key", 1, [&](const Decision&) { ++told; });
            });
        }
    }
    CHECK(told == 2 * asked);
}

TEST_CASE("handlers that ask again are told as well before their limiter is destroyed, whatever guards it") {
    const RedisServer server;
    check_that_who_asks_while_it_ends_is_told(server, [](const RedisStorage& store) {
        return Guarded{store, {.on_failure = penstock::Local{.gateways = 2, .max_keys = 1000}}};
    });
    check_that_who_asks_while_it_ends_is_told(server, [](const RedisStorage& store) { return DeniedCache{store}; });
    check_that_who_asks_while_it_ends_is_told(server, [](const RedisStorage& store) { return Shed{store}; });
    check_that_who_asks_while_it_ends_is_told(server, [](const RedisStorage& store) {
        return Split{store, {.ways = 4, .is_hot = [](std::string_view) { return true; }}};
    });
    check_that_who_asks_while_it_ends_is_told(server, [](const RedisStorage& store) {
        return penstock::Leased{store, {.size = 10}};
    });
}

}  // namespace
