// SPDX-License-Identifier: MIT
// A store that fails, behind a breaker: who decides then, and what comes back when it does.
#include <penstock/guard/guarded.hpp>

#include "../../support/flaky_storage.hpp"
#include "../../support/print.hpp"
#include "../../support/refusal.hpp"

#include <penstock/guard/denied_cache.hpp>
#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Allow;
using penstock::Decision;
using penstock::Deny;
using penstock::FixedWindow;
using penstock::Guarded;
using penstock::Limiter;
using penstock::Local;
using penstock::ManualClock;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::FlakyStorage;
using support::text_of;

constexpr TokenBucket bucket{.capacity = 10, .refill = penstock::per_second(1)};

/// A limiter over a store in the test's hands, on a clock in the test's hands.
struct Fixture {
    explicit Fixture(const penstock::GuardedOptions& options = {}, std::size_t nodes = 1)
        : store(nodes), guarded(store, options), limiter(bucket, guarded, clock) {}

    /// How many of so many checks were sent.
    std::uint64_t sent(int checks, std::string_view key = "a") {
        const std::uint64_t before = store.asked();
        for (int i = 0; i < checks; ++i) {
            (void)limiter.check(key);
        }
        return store.asked() - before;
    }

    ManualClock clock;
    FlakyStorage store;
    Guarded<FlakyStorage> guarded;
    Limiter<TokenBucket, Guarded<FlakyStorage>, ManualClock> limiter;
};

TEST_CASE("while the store is well nothing changes") {
    Fixture fixture;
    Limiter alone{bucket, penstock::LocalStorage{}, fixture.clock};
    for (int i = 0; i < 15; ++i) {
        CHECK(fixture.limiter.check("a") == alone.check("a"));
        fixture.clock.advance(300ms);
    }
    CHECK(fixture.limiter.peek("a", 3) == alone.peek("a", 3));
    CHECK(fixture.limiter.refund("a", 2) == alone.refund("a", 2));
    CHECK(fixture.limiter.charge("a", 5) == alone.charge("a", 5));
    CHECK(fixture.limiter.reserve("a", 1h, 2) == alone.reserve("a", 1h, 2));
    fixture.limiter.reset("a");
    CHECK(fixture.limiter.peek("a") == alone.peek("b"));
    CHECK(fixture.guarded.stats().failed == 0);
}

TEST_CASE("failures are decided by the policy; after five of them the store is asked no more but for a probe") {
    Fixture fixture;
    fixture.store.fail(StoreError::timeout);
    CHECK(fixture.limiter.check("a") == Decision{.allowed = true, .source = Source::fail_open});
    CHECK(fixture.sent(1000) == 4);
    CHECK(fixture.guarded.stats().open == 1);
    CHECK(fixture.guarded.stats().refused == 996);
    fixture.clock.advance(5s);
    CHECK(fixture.sent(1000) == 1);
    fixture.store.fail(StoreError::none);
    CHECK(fixture.sent(1000) == 0);
    fixture.clock.advance(5s);
    CHECK(fixture.sent(5) == 5);
    CHECK(fixture.limiter.check("b").source == Source::store);
    const penstock::GuardedStats stats = fixture.guarded.stats();
    CHECK(stats.open == 0);
    CHECK(stats.openings == 1);
    CHECK(stats.probes == 2);
    CHECK(stats.failed == 6);
}

TEST_CASE("an error that is about one key opens no breaker") {
    Fixture fixture;
    fixture.store.fail(StoreError::wrong_type);
    CHECK(fixture.sent(100) == 100);
    CHECK(fixture.limiter.check("a").source == Source::fail_open);
}

TEST_CASE("to fail closed is a decision with a time to come back") {
    Fixture fixture({.on_failure = Deny{}});
    fixture.store.fail(StoreError::unavailable);
    for (int i = 0; i < 10; ++i) {
        const Decision decision = fixture.limiter.check("a");
        CHECK_FALSE(decision.allowed);
        CHECK(decision.source == Source::fail_closed);
        CHECK(decision.retry_after > 0us);
        CHECK(decision.retry_after < penstock::never);
    }
}

TEST_CASE("a slow answer is used, and counts as a failure") {
    Fixture fixture({.breaker = {.slow = 1ms}});
    fixture.store.delay(3ms);
    for (int i = 0; i < 5; ++i) {
        CHECK(fixture.limiter.check("a").source == Source::store);
    }
    CHECK(fixture.guarded.stats().open == 1);
    CHECK(fixture.limiter.check("a").source == Source::fail_open);
}

TEST_CASE("only the keys of the node that failed leave the store") {
    Fixture fixture({}, 3);
    fixture.store.fail(StoreError::timeout, 1);
    CHECK(fixture.sent(100, FlakyStorage::key_of(1)) == 5);
    CHECK(fixture.sent(100, FlakyStorage::key_of(0)) == 100);
    CHECK(fixture.sent(100, FlakyStorage::key_of(2)) == 100);
    CHECK(fixture.guarded.stats().open == 1);
}

TEST_CASE("the local share is a gateway's part of the limit, rounded up, and refills in its turn") {
    Fixture fixture({.on_failure = Local{.gateways = 4}});
    fixture.store.fail(StoreError::unavailable);
    for (std::uint64_t left = 3; left-- > 0;) {
        const Decision decision = fixture.limiter.check("a");
        CHECK(decision.allowed);
        CHECK(decision.source == Source::fallback);
        CHECK(decision.limit == 3);
        CHECK(decision.remaining == left);
    }
    CHECK(fixture.limiter.check("a").retry_after == 4s);
    fixture.clock.advance(4s - 1us);
    CHECK_FALSE(fixture.limiter.check("a").allowed);
    fixture.clock.advance(1us);
    CHECK(fixture.limiter.check("a").allowed);
}

TEST_CASE("a share is never below one unit, however many gateways there are") {
    Fixture fixture({.on_failure = Local{.gateways = 1'000'000}});
    fixture.store.fail(StoreError::unavailable);
    CHECK(fixture.limiter.check("a").allowed);
    CHECK_FALSE(fixture.limiter.check("a").allowed);
    CHECK(fixture.limiter.check("b", 2).retry_after == penstock::never);
}

TEST_CASE("the number of gateways may change at any time, and what was counted stays counted") {
    Fixture fixture({.on_failure = Local{.gateways = 1}});
    fixture.store.fail(StoreError::unavailable);
    (void)fixture.limiter.check("a", 4);
    fixture.guarded.set_gateways(2);
    CHECK(fixture.limiter.check("a").remaining == 0);
    CHECK_FALSE(fixture.limiter.check("a").allowed);
    fixture.guarded.set_gateways(1);
    CHECK(fixture.limiter.check("a").remaining == 4);
    CHECK(text_of([&] { fixture.guarded.set_gateways(0); }) == "Local.gateways is 0: allowed is 1 to 1000000");
    CHECK(fixture.limiter.check("a").remaining == 3);
}

TEST_CASE("a store that comes and goes forgets nothing, and hands out no second local burst") {
    Fixture fixture({.on_failure = Local{.gateways = 2}});
    CHECK(fixture.sent(4) == 4);
    std::uint64_t admitted = 0;
    for (int outage = 0; outage < 20; ++outage) {
        fixture.store.fail(StoreError::unavailable);
        for (int i = 0; i < 10; ++i) {
            admitted += fixture.limiter.check("a").allowed ? 1 : 0;
        }
        fixture.store.fail(StoreError::none);
        while (fixture.limiter.check("b").source != Source::store) {
            fixture.clock.advance(100ms);
        }
    }
    // What the share gives in the time of all outages: probes come every five seconds at the latest.
    CHECK(admitted <= 5 + 20 * 5 / 2);
    CHECK(fixture.store.peek("a", bucket, 0us).remaining == 5);  // after one more
}

TEST_CASE("a reset forgets the local count, too") {
    Fixture fixture({.on_failure = Local{.gateways = 2}});
    fixture.store.fail(StoreError::unavailable);
    (void)fixture.limiter.check("a", 5);
    fixture.limiter.reset("a");
    CHECK(fixture.limiter.check("a").remaining == 4);
    fixture.store.fail(StoreError::none);
    fixture.clock.advance(5s);
    fixture.limiter.reset("a");
    fixture.store.fail(StoreError::unavailable);
    CHECK(fixture.limiter.check("a").remaining == 4);
}

TEST_CASE("a batch goes on where the breaker lets it, in order") {
    Fixture fixture({.on_failure = Local{.gateways = 1}}, 2);
    fixture.store.fail(StoreError::timeout, 1);
    std::vector<std::string> keys;
    std::vector<penstock::Check> checks;
    for (std::size_t i = 0; i < 200; ++i) {
        keys.push_back(FlakyStorage::key_of(i % 2));
    }
    for (const std::string& key : keys) {
        checks.push_back({.key = key});
    }
    std::vector<Decision> decisions(checks.size());
    fixture.limiter.check(checks, decisions);
    for (std::size_t i = 0; i < 200; ++i) {
        CAPTURE(i);
        CHECK(decisions[i].source == (i % 2 == 0 ? Source::store : Source::fallback));
        CHECK(decisions[i].allowed == (i / 2 < 10));
        CHECK(decisions[i].limit == 10);
    }
    CHECK(fixture.guarded.stats().open == 1);
}

TEST_CASE("a batch of failures is told by the policy") {
    Fixture fixture({.on_failure = Deny{}});
    fixture.store.fail(StoreError::timeout);
    const std::array<penstock::Check, 3> checks{{{.key = "a"}, {.key = "b"}, {.key = "c"}}};
    std::array<Decision, 3> decisions;
    fixture.limiter.check(checks, decisions);
    for (const Decision& decision : decisions) {
        CHECK(decision.source == Source::fail_closed);
    }
}

TEST_CASE("handlers are told what callers are told, at once if the breaker is open") {
    Fixture fixture({.on_failure = Local{.gateways = 1}});
    std::vector<Decision> told;
    const auto ask = [&] {
        fixture.limiter.async_check("a", 1, [&](const Decision& decision) { told.push_back(decision); });
    };
    ask();
    CHECK(told.empty());
    fixture.store.answer();
    REQUIRE(told.size() == 1);
    CHECK(told.back().source == Source::store);
    CHECK(told.back().remaining == 9);
    fixture.store.fail(StoreError::timeout);
    for (int i = 0; i < 5; ++i) {
        ask();
        fixture.store.answer();
        CHECK(told.back().source == Source::fallback);
    }
    ask();
    CHECK(told.size() == 7);
    CHECK(told.back().remaining == 4);
    CHECK(fixture.guarded.stats().refused == 1);
}

TEST_CASE("an answer that comes when the limiter is gone still finds who asked") {
    FlakyStorage store;
    Decision told;
    {
        Limiter limiter{bucket, Guarded{store, {.on_failure = Local{.gateways = 2}}}, ManualClock{}};
        store.fail(StoreError::unavailable);
        limiter.async_check("a", 1, [&](const Decision& decision) { told = decision; });
    }
    store.answer();
    CHECK(told.source == Source::fallback);
    CHECK(told.limit == 5);
}

struct Task {
    struct promise_type {
        static Task get_return_object() noexcept { return {}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_never final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        static void unhandled_exception() noexcept {}
    };
};

Task check_twice(Fixture& fixture, std::vector<Decision>& told) {
    told.push_back(co_await fixture.limiter.async_check("a"));
    told.push_back(co_await fixture.limiter.async_check("a", 2));
}

TEST_CASE("coroutines go on when there is an answer, or at once if nobody is asked") {
    Fixture fixture;
    std::vector<Decision> told;
    check_twice(fixture, told);
    CHECK(told.empty());
    fixture.store.answer();
    CHECK(told.size() == 1);
    fixture.store.answer();
    REQUIRE(told.size() == 2);
    CHECK(told[1].remaining == 7);
    fixture.store.fail(StoreError::unavailable);
    (void)fixture.sent(5);
    check_twice(fixture, told);
    REQUIRE(told.size() == 4);
    CHECK(told[3].source == Source::fail_open);
}

TEST_CASE("guards nest: the inner one decides what it can, the outer one the rest") {
    FlakyStorage store;
    ManualClock clock;
    Limiter limiter{
        bucket, Guarded{Guarded{store, {.on_failure = Deny{}}}, {.on_failure = Local{.gateways = 2}}}, clock};
    CHECK(limiter.check("a").source == Source::store);
    store.fail(StoreError::unavailable);
    CHECK(limiter.check("a").source == Source::fallback);
}

TEST_CASE("a probe that a guard beneath answers is none: the breaker stays open until the store is asked") {
    FlakyStorage store;
    ManualClock clock;
    Guarded guarded{penstock::DeniedCache{store, {.max_age = 1h}}};
    Limiter limiter{bucket, guarded, clock};
    CHECK(limiter.check("a", 10).allowed);
    CHECK(limiter.check("a").source == Source::store);
    CHECK(limiter.check("a").source == Source::denied_cache);
    store.fail(StoreError::timeout);
    for (int i = 0; i < 5; ++i) {
        (void)limiter.check("b");
    }
    clock.advance(500ms);
    CHECK(limiter.check("a").source == Source::fail_open);
    clock.advance(4500ms);
    limiter.reset("c");  // the probe
    CHECK(guarded.stats().probes == 1);
    CHECK(limiter.check("a").source == Source::fail_open);
    clock.advance(5s);
    CHECK(limiter.check("a").source == Source::fail_open);  // another probe: "a" may come again, and is asked for
    CHECK(guarded.stats().open == 1);
}

TEST_CASE("a client who is denied without the store does not close the breaker") {
    FlakyStorage store;
    ManualClock clock;
    Guarded guarded{penstock::DeniedCache{store, {.max_age = 1h}}};
    Limiter limiter{TokenBucket{.capacity = 1, .refill = penstock::per_hour(1)}, guarded, clock};
    (void)limiter.check("a");
    (void)limiter.check("a");
    store.fail(StoreError::timeout);
    for (int i = 0; i < 5; ++i) {
        (void)limiter.check("b");
    }
    clock.advance(5s);
    CHECK(limiter.check("a").source == Source::denied_cache);  // as a probe
    CHECK(guarded.stats().open == 1);
    store.fail(StoreError::none);
    CHECK(limiter.check("b").source == Source::store);  // which is the probe now
    CHECK(guarded.stats().open == 0);
}

TEST_CASE("options out of range are refused by name") {
    const FlakyStorage store;
    CHECK(text_of([&] {
              Guarded{store, {.on_failure = Local{.gateways = 0}}};
          }) == "Local.gateways is 0: allowed is 1 to 1000000");
    CHECK(text_of([&] {
              Guarded{store, {.breaker = {.percent = 101}}};
          }) == "Breaker.percent is 101: allowed is 0 to 100");
    CHECK(text_of([&] {
              Limiter{bucket, Guarded{store, {.on_failure = Local{.max_keys = 0}}}};
          }) == "LocalStorage.max_keys is 0: allowed is 1 to 68719476736");
}

TEST_CASE("threads that check while the store comes and goes are each decided for once") {
    FlakyStorage store;
    Guarded guarded{store, {.on_failure = Local{.gateways = 1}, .breaker = {.probe_interval = 1us}}};
    Limiter limiter{TokenBucket{.capacity = 1'000'000'000, .refill = penstock::per_second(1)}, guarded};
    std::atomic<bool> over{false};
    std::jthread weather([&] {
        for (int i = 0; !over; ++i) {
            store.fail(i % 2 == 0 ? StoreError::timeout : StoreError::none);
            std::this_thread::yield();
        }
    });
    std::atomic<std::uint64_t> wrong{0};
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 4; ++thread) {
            threads.emplace_back([&] {
                for (int i = 0; i < 5000; ++i) {
                    const Decision decision = limiter.check("a");
                    const bool right = decision.source == Source::store || decision.source == Source::fallback;
                    wrong += decision.allowed && right ? 0 : 1;
                }
            });
        }
    }
    over = true;
    CHECK(wrong == 0);
    CHECK(guarded.stats().openings > 0);
}

}  // namespace
