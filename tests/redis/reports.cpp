// SPDX-License-Identifier: MIT
// Faults that other limiters over Redis had, in the way that their users met them.
#include "../support/expect.hpp"
#include "../support/fault.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"
#include "../support/shifted_time.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using fault::await;
using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Layout;
using penstock::Limiter;
using penstock::per;
using penstock::per_hour;
using penstock::RedisStorage;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using support::Pause;
using support::RedisClient;
using support::RedisServer;
using Redis = Limiter<TokenBucket, RedisStorage>;

constexpr std::array<Layout, 2> layouts{Layout::packed, Layout::per_key};

/// Calls have all the time they need.
RedisStorage::Options patient_options(const RedisServer& server, Layout layout) {
    return {.url = "redis://127.0.0.1:" + std::to_string(server.port()),
            .timeout = 20s,
            .connect_timeout = 20s,
            .stall_timeout = 20s,
            .layout = layout,
            .expected_entries = 1000,
            .on_failure = penstock::Deny{}};
}

std::uint64_t failures(const penstock::redis::Stats& stats) {
    return std::accumulate(stats.ended.begin() + 1, stats.ended.end(), std::uint64_t{0});
}

/// What stands in the store of one client.
std::string only_key(RedisClient& client) {
    std::vector<std::string> keys;
    for (const support::Reply& key : client("KEYS", "*").items) {
        if (!key.text.ends_with(":meta")) {
            keys.push_back(key.text);
        }
    }
    REQUIRE(keys.size() == 1);
    return keys[0];
}

milliseconds ttl(RedisClient& client, const std::string& key) {
    return milliseconds(client("PTTL", key).integer);
}

TEST_CASE("a server that forgot its scripts counts each check once and fails none") {
    const RedisServer server;
    RedisClient client(server.port());
    for (const Layout layout : layouts) {
        Redis limiter{TokenBucket{.capacity = 5, .refill = per_hour(1)}, RedisStorage(patient_options(server, layout))};
        CHECK(limiter.check("key") == allowed(4));
        CHECK(limiter.check("key") == allowed(3));
        client("SCRIPT", "FLUSH");
        CHECK(limiter.check("key") == allowed(2));
        client("SCRIPT", "FLUSH");
        std::atomic<int> told{0};
        std::atomic<int> right{0};
        for (int i = 0; i < 100; ++i) {
            limiter.async_check("pipelined" + std::to_string(i), 1, [&](const Decision& decision) {
                right += decision == allowed(4) ? 1 : 0;
                ++told;
            });
        }
        CHECK(await([&] { return told == 100; }));
        CHECK(right == 100);
        CHECK(failures(limiter.storage().stats()) == 0);
    }
}

TEST_CASE("a counter that lost its TTL blocks nobody for longer than its window, and gets one again") {
    const RedisServer server;
    RedisClient client(server.port());
    for (const Layout layout : layouts) {
        client("FLUSHALL");
        const penstock::ManualClock clock;
        Limiter limiter{FixedWindow{.limit = 2, .window = 60s}, RedisStorage(patient_options(server, layout)), clock};
        CHECK(limiter.check("key") == allowed(1));
        CHECK(limiter.check("key") == allowed(0));
        CHECK(limiter.check("key") == rejected(60s));
        const std::string key = only_key(client);
        CHECK(client("PERSIST", key).integer == 1);
        clock.set(60s);
        CHECK(limiter.check("key") == allowed(1));
        CHECK(ttl(client, key) > 0ms);
    }
}

// Where lifetimes matter the server's time stands where it is put: nobody waits for them.

struct Standing {
    support::ShiftedTime time;
    RedisServer server{{}, time.environment()};
};

Standing& standing() {
    static Standing shared;
    return shared;
}

constexpr microseconds base = 1'764'560'000'123'456us;
constexpr milliseconds slack = 2s;

/// A key lives for as long as the decision tells, and not for many times as long as it `matters`; then it is gone.
template <class Algorithm>
void check_lifetime(const Algorithm& algorithm, milliseconds matters) {
    for (const Layout layout : layouts) {
        standing().time.set(base);
        RedisClient client(standing().server.port());
        client("FLUSHALL");
        Limiter limiter{algorithm, RedisStorage(patient_options(standing().server, layout))};
        const Decision decision = limiter.check("key");
        CHECK(decision == allowed());
        const std::string key = only_key(client);
        const milliseconds lifetime = ttl(client, key);
        CHECK(lifetime >= decision.reset_after);
        // How long a state matters is remembered as a power of two, and a bucket's TTL is twice what is needed.
        CHECK(lifetime <= (2 * matters + slack) * (layout == Layout::packed ? 2 : 1));
        standing().time.set(base + lifetime - 1ms);
        CHECK(client("EXISTS", key).integer == 1);
        standing().time.set(base + lifetime + 1ms);
        CHECK(client("EXISTS", key).integer == 0);
    }
}

TEST_CASE("a key's TTL is in the right unit") {
    const TokenBucket bucket{.capacity = 10, .refill = per(10, 1s)};
    const FixedWindow fixed{.limit = 5, .window = 10s};
    const SlidingWindow sliding{.limit = 5, .window = 10s};
    check_lifetime(bucket, 100ms);
    check_lifetime(fixed, 10s);
    check_lifetime(sliding, 20s);
    check_lifetime(AllOf{bucket, fixed}, 10s);
    check_lifetime(AllOf{bucket, fixed, sliding}, 20s);
}

/// A limit of one a day is used up until the decision says that it is not.
template <class Algorithm>
void check_that_a_day_is_one(const Algorithm& algorithm, milliseconds matters) {
    check_lifetime(algorithm, matters);
    for (const Layout layout : layouts) {
        standing().time.set(base);
        RedisClient client(standing().server.port());
        client("FLUSHALL");
        Limiter limiter{algorithm, RedisStorage(patient_options(standing().server, layout))};
        CHECK(limiter.check("key") == allowed(0));
        const microseconds wait = limiter.check("key").retry_after;
        for (const microseconds passed : {microseconds(0), microseconds(301s), wait / 2, wait - 1us}) {
            standing().time.set(base + passed);
            CHECK(limiter.check("key") == rejected(wait - passed));
        }
        standing().time.set(base + wait);
        CHECK(limiter.check("key") == allowed(0));
    }
}

TEST_CASE("a key does not expire before its window of a day") {
    check_that_a_day_is_one(TokenBucket{.capacity = 1, .refill = per(1, 24h)}, 24h);
    check_that_a_day_is_one(FixedWindow{.limit = 1, .window = 24h}, 24h);
    check_that_a_day_is_one(SlidingWindow{.limit = 1, .window = 24h}, 48h);
}

TEST_CASE("a key that expires as it is asked for is a fresh client's, with a TTL") {
    for (const Layout layout : layouts) {
        for (const microseconds beside : {-1000us, -1us, 0us, 1us, 999us, 1000us, 1001us}) {
            standing().time.set(base);
            RedisClient client(standing().server.port());
            client("FLUSHALL");
            Limiter limiter{FixedWindow{.limit = 2, .window = 200ms},
                            RedisStorage(patient_options(standing().server, layout))};
            CHECK(limiter.check("key", 2) == allowed(0));
            const std::string key = only_key(client);
            standing().time.set(base + ttl(client, key) + beside);
            CHECK(limiter.check("key") == allowed(1));
            CHECK(ttl(client, key) > 0ms);
            CHECK(limiter.check("key") == allowed(0));
            CHECK(limiter.check("key") == rejected().remaining(0));
        }
    }
}

microseconds time_of(RedisClient& client) {
    const auto time = client("TIME").items;
    return std::chrono::seconds(std::stoll(time.at(0).text)) + microseconds(std::stoll(time.at(1).text));
}

struct Window {
    std::uint64_t calls = 0;
    std::uint64_t allowed = 0;
};

/// What the windows of a limit that renews all the time admitted, by the ends of the windows.
std::map<microseconds, Window> windows_of(RedisClient& client, Layout layout, const RedisServer& server) {
    constexpr microseconds length = 200ms;
    Limiter limiter{FixedWindow{.limit = 2, .window = length}, RedisStorage(patient_options(server, layout))};
    std::map<microseconds, Window> windows;
    std::optional<std::string> key;
    microseconds usable = 0us;
    const microseconds begin = time_of(client);
    for (microseconds after = begin; after < begin + 5 * length;) {
        const microseconds before = time_of(client);
        const Decision decision = limiter.check("key");
        after = time_of(client);
        CHECK(decision.source == Source::store);
        CHECK(decision.remaining <= 1);
        key = key ? key : only_key(client);
        CHECK(client("PTTL", *key).integer != -1);
        if (after - before >= length) {
            // On a machine that was busy elsewhere, nobody knows in which window it was.
            windows.erase(windows.upper_bound(before), windows.end());
            usable = after;
            continue;
        }
        const microseconds latest = after + decision.reset_after;
        const microseconds end = latest - latest % length;
        CHECK(end >= before + decision.reset_after);
        if (end - length >= usable) {
            ++windows[end].calls;
            windows[end].allowed += decision.allowed ? 1 : 0;
        }
    }
    return windows;
}

TEST_CASE("a key that is asked for all the time while it runs out admits exactly its limit in each window") {
    const RedisServer server;
    RedisClient client(server.port());
    for (const Layout layout : layouts) {
        client("FLUSHALL");
        for (const auto& each : windows_of(client, layout, server)) {
            INFO("the window that ends at ", each.first);
            CHECK(each.second.allowed == (std::min)(each.second.calls, std::uint64_t{2}));
        }
    }
}

TEST_CASE("an answer that comes late is not given to the next caller, of another plan") {
    const RedisServer server;
    const penstock::Plan<TokenBucket> small(TokenBucket{.capacity = 10, .refill = per_hour(1)});
    const TokenBucket large{.capacity = 1000, .refill = per_hour(1)};
    for (const Layout layout : layouts) {
        auto options = patient_options(server, layout);
        options.timeout = 500ms;
        options.on_failure = penstock::Allow{};
        Redis limiter{large, RedisStorage(options)};
        REQUIRE(await([&] { return limiter.check("warm").source == Source::store; }));
        REQUIRE(failures(limiter.storage().stats()) == 0);
        std::atomic<bool> told{false};
        Decision at_once;
        {
            const Pause pause(server);
            CHECK(limiter.check("late", small).source == Source::fail_open);
            limiter.async_check("next", 1, [&](const Decision& decision) {
                at_once = decision;
                told = true;
            });
        }
        CHECK(await([&] { return told.load(); }));
        CHECK(at_once == allowed(999).limit(1000));
        CHECK(limiter.check("another") == allowed(999).limit(1000));
        CHECK(limiter.check("late", small, 0) == allowed(9).limit(10));
        CHECK(limiter.storage().stats().late == 1);
    }
}

TEST_CASE("handlers that ask again are told as well before their limiter is destroyed") {
    const RedisServer server;
    for (const int asked : {1, 100}) {
        for (const Layout layout : layouts) {
            std::atomic<int> told{0};
            {
                const Pause pause(server);
                Redis limiter{TokenBucket{.capacity = 1000, .refill = per_hour(1)},
                              RedisStorage(patient_options(server, layout))};
                for (int i = 0; i < asked; ++i) {
                    limiter.async_check("key", 1, [&](const Decision& first) {
                        told += first.source == Source::fail_closed ? 1 : 0;
                        limiter.async_check("key", 1, [&](const Decision& second) {
                            told += second.source == Source::fail_closed ? 1 : 0;
                        });
                    });
                }
            }
            CHECK(told == 2 * asked);
        }
    }
}

/// The first handler has another thread destroy the limiter, while the others wait for their answers.
void check_destruction_by_another_thread(const RedisServer& server, const RedisStorage::Options& options, bool answer) {
    std::atomic<int> told{0};
    std::atomic<int> told_when_destroyed{-1};
    auto limiter = std::make_unique<Redis>(TokenBucket{.capacity = 1000, .refill = per_hour(1)}, RedisStorage(options));
    Redis& shared = *limiter;
    std::thread destroyer;
    Pause pause(server);
    shared.async_check("first", 1, [&](const Decision&) {
        destroyer = std::thread([&] {
            limiter.reset();
            told_when_destroyed = told.load();
        });
        ++told;
    });
    for (int i = 1; i < 100; ++i) {
        shared.async_check("key", 1, [&](const Decision&) { ++told; });
    }
    if (answer) {
        pause.end();
    }
    REQUIRE(await([&] { return told_when_destroyed >= 0; }));
    destroyer.join();
    CHECK(told_when_destroyed == 100);
    CHECK(told == 100);
}

TEST_CASE("a handler may have another thread destroy the limiter: all others are told before it is") {
    const RedisServer server;
    for (const Layout layout : layouts) {
        auto options = patient_options(server, layout);
        check_destruction_by_another_thread(server, options, true);
        options.timeout = 300ms;
        check_destruction_by_another_thread(server, options, false);
    }
}

std::int64_t connections_of(RedisClient& client) {
    const std::string text = client("INFO", "stats").text;
    const std::string field = "total_connections_received:";
    return std::stoll(text.substr(text.find(field) + field.size()));
}

TEST_CASE("a server that became a replica is connected to anew, until it is a master again") {
    const RedisServer server;
    const RedisServer master;
    RedisClient client(server.port());
    for (const Layout layout : layouts) {
        auto options = fault::options_of(server.port());
        options.layout = layout;
        options.timeout = 20s;
        options.connect_timeout = 20s;
        options.stall_timeout = 20s;
        fault::Watched watched(options);
        REQUIRE(watched.recovers());
        const std::int64_t connections = connections_of(client);
        REQUIRE(client("REPLICAOF", "127.0.0.1", std::to_string(master.port())).text == "OK");
        for (int i = 0; i < 10; ++i) {
            CHECK(watched.check().source == Source::fail_open);
        }
        CHECK(watched.ended(StoreError::read_only) >= 1);
        CHECK(await([&] { return connections_of(client) > connections; }));
        CHECK(watched.check().source == Source::fail_open);
        REQUIRE(client("REPLICAOF", "NO", "ONE").text == "OK");
        CHECK(watched.recovers());
    }
}

}  // namespace
