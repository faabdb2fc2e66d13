// SPDX-License-Identifier: MIT
// Guarded over servers that die, hang, dawdle and fail over: the callers hardly notice.
#include "../support/fault.hpp"
#include "../support/proxy.hpp"
#include "../support/random.hpp"
#include "../support/redis_cluster.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/guard/guarded.hpp>
#include <penstock/redis/slot.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using fault::await;
using fault::options_of;
using penstock::Decision;
using penstock::Deny;
using penstock::FixedWindow;
using penstock::Guarded;
using penstock::GuardedOptions;
using penstock::GuardedStats;
using penstock::Limiter;
using penstock::Local;
using penstock::ManualClock;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::RedisServer;

using Store = Guarded<RedisStorage>;

/// A guarded store on a port, and a limiter over it whose calls must end in time.
class Gateway {
public:
    explicit Gateway(int port, const GuardedOptions& options = {.breaker = {.probe_interval = 100ms}})
        : Gateway(options_of(port), options) {}

    Gateway(const RedisStorage::Options& redis, const GuardedOptions& options)
        : timeout_(redis.timeout), storage_(redis), guarded_(storage_, options), limiter_(fault::bucket, guarded_) {}

    Decision check(std::string_view key = "key") {
        const auto begin = fault::Clock::now();
        const Decision decision = limiter_.check(key);
        CHECK(fault::Clock::now() - begin < timeout_ + 1s);  // to find what hangs; a busy machine takes its time
        return decision;
    }

    bool answered(std::string_view key = "key") { return check(key).source == Source::store; }

    bool recovers(std::string_view key = "key") {
        return await([&] { return answered(key); });
    }

    [[nodiscard]] std::uint64_t timeouts() const { return fault::ended(storage_.stats(), StoreError::timeout); }
    [[nodiscard]] std::uint64_t sent() const { return storage_.stats().sent; }
    [[nodiscard]] GuardedStats stats() const { return guarded_.stats(); }
    [[nodiscard]] auto& limiter() { return limiter_; }

private:
    std::chrono::microseconds timeout_;
    RedisStorage storage_;
    Store guarded_;
    Limiter<TokenBucket, Store> limiter_;
};

TEST_CASE("a server that hangs costs five timeouts, and one a probe until it goes on") {
    const RedisServer server;
    Gateway gateway(server.port());
    REQUIRE(gateway.recovers());
    server.stop();
    for (int i = 0; i < 1000; ++i) {
        const Decision decision = gateway.check();
        CHECK(decision.allowed);
        CHECK(decision.source == Source::fail_open);
    }
    const GuardedStats stats = gateway.stats();
    CHECK(stats.open == 1);
    CHECK(stats.openings == 1);
    CHECK(stats.failed == 5 + stats.probes);
    CHECK(stats.refused == 1000 - stats.failed);
    CHECK(gateway.timeouts() <= stats.failed);  // the connection is given up in between
    server.resume();
    CHECK(gateway.recovers());
    CHECK(gateway.stats().open == 0);
}

TEST_CASE("of 16 threads that check when a probe is due one asks, and the others are answered at once") {
    const RedisServer server;
    ManualClock clock;
    clock.set(1h);
    const RedisStorage storage(options_of(server.port()));
    Store guarded(storage);
    Limiter limiter{fault::bucket, guarded, clock};
    REQUIRE(await([&] { return limiter.check("key").source == Source::store; }));
    server.stop();
    while (guarded.stats().open == 0) {
        (void)limiter.check("key");
    }
    const auto check_at_once = [&] {
        const auto sources = threads::results_of(16, [&](std::size_t) { return limiter.check("key").source; });
        return std::count(sources.begin(), sources.end(), Source::fail_open);
    };
    const std::uint64_t probes = guarded.stats().probes;
    const std::uint64_t failed = guarded.stats().failed;
    CHECK(check_at_once() == 16);
    CHECK(guarded.stats().probes == probes);
    clock.advance(5s);
    CHECK(check_at_once() == 16);
    CHECK(guarded.stats().probes == probes + 1);
    CHECK(guarded.stats().failed == failed + 1);
    clock.advance(4s - 1us);  // less than any interval
    CHECK(check_at_once() == 16);
    CHECK(guarded.stats().probes == probes + 1);
    server.resume();
    CHECK(await([&] {
        clock.advance(5s);
        return limiter.check("key").source == Source::store;
    }));
    CHECK(guarded.stats().open == 0);
    CHECK(check_at_once() == 0);
}

TEST_CASE("to fail closed is a decision, whether the port is closed or the server hangs") {
    const GuardedOptions options{.on_failure = Deny{}};
    const auto expect_denied = [](Gateway& gateway) {
        for (int i = 0; i < 10; ++i) {
            const Decision decision = gateway.check();
            CHECK_FALSE(decision.allowed);
            CHECK(decision.source == Source::fail_closed);
            CHECK(decision.retry_after > 0us);
            CHECK(decision.retry_after != penstock::never);
        }
    };
    Gateway closed(support::free_port(), options);
    expect_denied(closed);
    const RedisServer server;
    Gateway hangs(server.port(), options);
    REQUIRE(hangs.recovers());
    server.stop();
    expect_denied(hangs);
    server.resume();
}

/// The processor time of the calling thread.
std::chrono::nanoseconds own_time() {
    std::timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

/// Threads that check without a pause; each decision must be the store's or a local one, and those that were made while
/// the breaker was open must be cheap.
class Crowd {
public:
    explicit Crowd(Gateway& gateway, Source otherwise, std::size_t threads = 16) {
        for (std::size_t i = 0; i < threads; ++i) {
            threads_.emplace_back([this, &gateway, otherwise, key = std::string(1, static_cast<char>('a' + i))] {
                while (!over_) {
                    const bool was_open = gateway.stats().open > 0;
                    const auto begin = own_time();
                    const Decision decision = gateway.limiter().check(key);
                    const bool right = decision.source == Source::store || decision.source == otherwise;
                    wrong_ += right && decision.allowed ? 0 : 1;
                    if (was_open && decision.source == otherwise) {
                        alone_ += (own_time() - begin).count();
                        ++alone_count_;
                    }
                }
            });
        }
    }

    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    ~Crowd() {
        over_ = true;
        for (std::thread& thread : threads_) {
            thread.join();
        }
        CHECK(wrong_ == 0);
        REQUIRE(alone_count_ > 0);
        CHECK(alone_ / alone_count_ < 50'000);  // nanoseconds
    }

private:
    std::atomic<bool> over_{false};
    std::atomic<std::uint64_t> wrong_{0};
    std::atomic<std::int64_t> alone_{0};
    std::atomic<std::int64_t> alone_count_{0};
    std::vector<std::thread> threads_;
};

/// The breaker opens under load, closes when the store is well again, and everybody was answered.
template <class Break, class Mend>
void survive(int port, Break break_it, Mend mend_it) {
    // One in a hundred is enough to open it: those who wait for the server are few beside those who need not.
    Gateway gateway(port, {.on_failure = Local{.gateways = 1}, .breaker = {.percent = 1, .probe_interval = 50ms}});
    REQUIRE(gateway.recovers());
    const Crowd crowd(gateway, Source::fallback);
    for (int outage = 0; outage < 2; ++outage) {
        break_it();
        CHECK(await([&] { return gateway.stats().open == 1; }));
        CHECK(await([&, before = gateway.stats().refused] { return gateway.stats().refused > before + 1000; }));
        mend_it();
        CHECK(await([&] { return gateway.stats().open == 0; }));
        CHECK(gateway.recovers("a key of its own"));
    }
    CHECK(gateway.stats().openings >= 2);
}

TEST_CASE("16 threads are answered while the server is killed and comes back") {
    RedisServer server;
    survive(
        server.port(), [&] { server.kill(); }, [&] { server.restart(); });
}

TEST_CASE("16 threads are answered while the server hangs and goes on") {
    const RedisServer server;
    survive(
        server.port(), [&] { server.stop(); }, [&] { server.resume(); });
}

TEST_CASE("16 threads are answered while every answer takes a second") {
    const RedisServer server;
    support::Proxy proxy(server.port());
    survive(
        proxy.port(),
        [&] {
            proxy.cut_by([since = fault::Clock::now()](std::size_t waiting) mutable {
                const bool due = fault::Clock::now() - since > 1s;
                since = due ? fault::Clock::now() : since;
                return due ? waiting : 0;
            });
        },
        [&] { proxy.cut_by({}); });
}

TEST_CASE("16 threads are answered while the network loses packets") {
    const RedisServer server;
    support::Proxy proxy(server.port());
    survive(
        proxy.port(),
        [&] {
            // What is lost is sent again after a fifth of a second, and all that comes after it waits for it.
            proxy.cut_by([random = support::Random(1), again = fault::Clock::now()](std::size_t waiting) mutable {
                if (fault::Clock::now() < again) {
                    return std::size_t{0};
                }
                if (random.chance(20)) {
                    again = fault::Clock::now() + 200ms;
                    return std::size_t{0};
                }
                return waiting;
            });
        },
        [&] { proxy.cut_by({}); });
}

TEST_CASE("16 threads are answered while a master dies and its replica takes over") {
    support::RedisCluster cluster(3, 3);
    auto redis = options_of(0);
    redis.url = cluster.url();
    redis.layout = penstock::Layout::per_key;
    Gateway gateway(redis, {.on_failure = Local{.gateways = 1}, .breaker = {.percent = 1, .probe_interval = 50ms}});
    const auto all_by_the_store = [&] {
        for (char key = 'a'; key < 'a' + 16; ++key) {
            if (!gateway.recovers(std::string(1, key))) return false;
        }
        return true;
    };
    REQUIRE(all_by_the_store());
    {
        const Crowd crowd(gateway, Source::fallback);
        cluster.server(0).kill();
        CHECK(await([&] { return gateway.stats().open > 0; }));
        CHECK(all_by_the_store());
    }
    CHECK(gateway.stats().open == 1);  // that of the dead node, whose slots are another's now
}

TEST_CASE("who tries to log in gets no more than the shares while the store is away") {
    constexpr FixedWindow attempts{.limit = 5, .window = 24h};
    RedisServer server;
    ManualClock clock;
    clock.set(1h);
    const GuardedOptions options{.on_failure = Local{.gateways = 2}, .breaker = {.probe_interval = 1s}};
    const auto gateway = [&] { return Store(RedisStorage(options_of(server.port())), options); };
    Limiter first{attempts, gateway(), clock};
    Limiter second{attempts, gateway(), clock};
    const auto admitted = [&](int tries) {
        int count = 0;
        for (int i = 0; i < tries; ++i) {
            count += first.check("mallory").allowed ? 1 : 0;
            count += second.check("mallory").allowed ? 1 : 0;
            clock.advance(100ms);
        }
        return count;
    };
    server.kill();
    CHECK(admitted(50) == 6);  // a half of five each, rounded up
    server.restart();
    REQUIRE(await([&] {
        clock.advance(1s);
        return first.peek("x").source == Source::store && second.peek("x").source == Source::store;
    }));
    CHECK(admitted(50) == 5);
    server.kill();
    CHECK(admitted(50) == 0);
}

TEST_CASE("who tries to log in gets nothing from a store that is away and a policy that denies") {
    RedisServer server;
    Limiter limiter{FixedWindow{.limit = 5, .window = 24h},
                    Store(RedisStorage(options_of(server.port())), {.on_failure = Deny{}})};
    REQUIRE(await([&] { return limiter.peek("mallory").source == Source::store; }));
    server.kill();
    for (int i = 0; i < 100; ++i) {
        CHECK_FALSE(limiter.check("mallory").allowed);
    }
}

TEST_CASE("in a cluster only the keys of the node that failed leave the store, and its replica brings them back") {
    support::RedisCluster cluster(3, 3);
    auto redis = options_of(0);
    redis.url = cluster.url();
    redis.timeout = 200ms;
    redis.layout = penstock::Layout::per_key;
    Gateway gateway(redis, {.on_failure = Local{.gateways = 1}, .breaker = {.probe_interval = 100ms}});
    std::vector<std::string> keys;
    for (int i = 0; i < 60; ++i) {
        keys.push_back("client " + std::to_string(i));
        REQUIRE(gateway.recovers(keys.back()));
    }
    const auto of_the_first = [](const std::string& key) {
        return penstock::redis::slot_of("{" + key + "}") < support::RedisCluster::slots / 3;
    };
    cluster.server(0).stop();
    for (int round = 0; round < 3; ++round) {
        for (const std::string& key : keys) {
            CAPTURE(key);
            const Source expected = of_the_first(key) ? Source::fallback : Source::store;
            CHECK(gateway.check(key).source == expected);
        }
    }
    CHECK(gateway.stats().open == 1);
    cluster.server(0).kill();
    for (const std::string& key : keys) {
        CHECK(gateway.recovers(key));
    }
}

}  // namespace
