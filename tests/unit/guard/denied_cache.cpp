// SPDX-License-Identifier: MIT
// Whom the store has rejected this process rejects by itself, for as long as that is sure to be right.
#include <penstock/guard/denied_cache.hpp>

#include "../../support/archetypes.hpp"
#include "../../support/decisions.hpp"
#include "../../support/print.hpp"
#include "../../support/refusal.hpp"
#include "../../support/threads.hpp"

#include <penstock/guard/guarded.hpp>
#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::DeniedCache;
using penstock::FixedWindow;
using penstock::Guarded;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::Micros;
using penstock::Op;
using penstock::Plan;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::allowed;
using support::rejected;
using support::text_of;

/// A store that gateways share. It decides when it is asked, and tells handlers when the test says so.
template <class Only>
class Remote {
public:
    std::shared_ptr<LocalStorage::Bound<Only>> table =
        std::make_shared<LocalStorage::Bound<Only>>(LocalStorage{{.max_keys = 1000, .seed = 1}});
    std::shared_ptr<std::vector<std::string>> asked = std::make_shared<std::vector<std::string>>();
    std::shared_ptr<StoreError> error = std::make_shared<StoreError>(StoreError::none);
    std::shared_ptr<std::function<void()>> meanwhile =
        std::make_shared<std::function<void()>>();  // once, on the way back
    std::shared_ptr<std::vector<std::function<void()>>> answers =
        std::make_shared<std::vector<std::function<void()>>>();

    template <class Algorithm>
    class Bound {
    public:
        explicit Bound(const Remote& remote) : remote_(remote) {}

        StoreError apply(Op op,
                         std::string_view key,
                         const Plan<Algorithm>& plan,
                         Micros now,
                         std::uint64_t cost,
                         std::chrono::microseconds max_wait,
                         Decision& decision) noexcept {
            remote_.asked->emplace_back(key);
            if (*remote_.error != StoreError::none) {
                return *remote_.error;
            }
            (void)remote_.table->apply(op, key, plan, now, cost, max_wait, decision);
            if (const auto now_is_the_time = std::exchange(*remote_.meanwhile, {})) {
                now_is_the_time();
            }
            return StoreError::none;
        }

        template <class Handler>
        void async_apply(Op op,
                         std::string_view key,
                         const Plan<Algorithm>& plan,
                         Micros now,
                         std::uint64_t cost,
                         Handler handler) noexcept {
            Decision decision = failed(StoreError::none);
            const StoreError failure = apply(op, key, plan, now, cost, {}, decision);
            const auto shared = std::make_shared<Handler>(std::move(handler));  // std::function wants copies
            remote_.answers->push_back([shared, failure, decision] { (*shared)(failure, decision); });
        }

        [[nodiscard]] Decision failed(StoreError) const noexcept {
            return {.limit = 77, .source = Source::fail_closed};
        }
        [[nodiscard]] std::size_t node_of(std::string_view key, Micros) const noexcept { return key.size(); }

    private:
        Remote remote_;
    };
};

template <class Algorithm>
struct Fixture {
    explicit Fixture(const Algorithm& algorithm, const penstock::DeniedCacheOptions& options = {})
        : limiter(algorithm, DeniedCache{store, options}, clock) {}

    [[nodiscard]] std::size_t asked() const { return store.asked->size(); }

    void use_up(std::string_view key) {
        while (limiter.check(key).allowed) {
        }
    }

    /// Whether the next check is answered without the store.
    bool hits(std::string_view key, std::uint64_t cost = 1) {
        const std::size_t before = asked();
        const Decision decision = limiter.check(key, cost);
        CHECK((decision.source == Source::denied_cache) == (asked() == before));
        return decision.source == Source::denied_cache;
    }

    void answer_all() {
        for (const auto& answer : std::exchange(*store.answers, {})) {
            answer();
        }
    }

    ManualClock clock;
    Remote<Algorithm> store;
    Limiter<Algorithm, DeniedCache<Remote<Algorithm>>, ManualClock> limiter;
};

constexpr TokenBucket bucket{.capacity = 1, .refill = penstock::per(1, 500ms)};
constexpr FixedWindow window{.limit = 10, .window = 1h};

/// The same rejection, as this process tells it.
Decision cached(Decision decision) {
    decision.source = Source::denied_cache;
    return decision;
}

// When it answers

TEST_CASE("a client that was rejected is rejected here until the time that the store gave, which runs down") {
    Fixture fixture(bucket);
    CHECK(fixture.limiter.check("a") == allowed(1, 0, 500ms));
    fixture.clock.set(100ms);
    CHECK(fixture.limiter.check("a") == rejected(1, 0, 400ms, 400ms));
    CHECK(fixture.limiter.check("a") == cached(rejected(1, 0, 400ms, 400ms)));
    fixture.clock.set(499'999us);
    CHECK(fixture.limiter.check("a") == cached(rejected(1, 0, 1us, 1us)));
    CHECK(fixture.asked() == 2);
    fixture.clock.set(500ms);
    CHECK(fixture.limiter.check("a") == allowed(1, 0, 500ms));
    CHECK(fixture.limiter.storage().stats().hits == 2);
    CHECK(fixture.limiter.storage().stats().misses == 3);
}

TEST_CASE("a rejection is used for less than its greatest age since the store was asked") {
    Fixture fixture(window, {.max_age = 2s});
    fixture.clock.set(1s);
    fixture.use_up("a");
    fixture.clock.set(2'999'999us);
    CHECK(fixture.limiter.check("a") == cached(rejected(10, 0, 1h - 2'999'999us, 1h - 2'999'999us)));
    fixture.clock.set(3s);
    CHECK(fixture.limiter.check("a") == rejected(10, 0, 1h - 3s, 1h - 3s));
    CHECK(fixture.hits("a"));
}

TEST_CASE("the age counts from when the store was asked, not from its answer") {
    Fixture fixture(window);
    fixture.use_up("b");
    *fixture.store.meanwhile = [&] { fixture.clock.set(900ms); };
    CHECK_FALSE(fixture.hits("b", 2));
    fixture.clock.set(999'999us);
    CHECK(fixture.hits("b", 2));
    fixture.clock.set(1s);
    CHECK_FALSE(fixture.hits("b", 2));
}

TEST_CASE("a cost that can never pass is known to") {
    Fixture fixture(window);
    CHECK(fixture.limiter.check("a", 11) == rejected(10, 10, penstock::never, 0s));
    fixture.clock.set(10ms);
    CHECK(fixture.limiter.check("a", 11) == cached(rejected(10, 10, penstock::never, 0s)));
}

TEST_CASE("only the same client with the same cost under the same plan is rejected here") {
    Fixture fixture(window);
    fixture.use_up("a");
    CHECK(fixture.hits("a"));
    CHECK_FALSE(fixture.hits("b"));
    CHECK_FALSE(fixture.hits("a", 2));
    CHECK(fixture.hits("a", 2));
    const auto larger = penstock::plan(FixedWindow{.limit = 11, .window = 1h});
    CHECK(fixture.limiter.check("a", larger).source == Source::store);
    CHECK(fixture.limiter.check("a", larger) == rejected(11, 0, 1h, 1h));
    CHECK(fixture.limiter.check("a", larger) == cached(rejected(11, 0, 1h, 1h)));
    CHECK_FALSE(fixture.hits("a"));
}

TEST_CASE("all but checks is for the store") {
    Fixture fixture(bucket);
    fixture.use_up("a");
    CHECK(fixture.hits("a"));
    CHECK(fixture.limiter.peek("a") == rejected(1, 0, 500ms, 500ms));
    CHECK(fixture.limiter.reserve("a", 0s).decision == rejected(1, 0, 500ms, 500ms));
    CHECK(fixture.limiter.reserve("a", 1s).wait == 500ms);
    CHECK(fixture.hits("a"));
}

TEST_CASE("a clock that goes back asks the store") {
    Fixture fixture(window);
    fixture.clock.set(10s);
    fixture.use_up("a");
    CHECK(fixture.hits("a"));
    fixture.clock.set(9'999'999us);
    CHECK_FALSE(fixture.hits("a"));
}

TEST_CASE("with the store's own time the cache goes by that of this machine") {
    // The fake store decides at the time that stands for the server's, which is far in the future.
    const Remote<FixedWindow> store;
    DeniedCache<Remote<FixedWindow>>::Bound<FixedWindow> bound{DeniedCache{store, {.max_age = 1h}}};
    const auto plan = penstock::plan(FixedWindow{.limit = 1, .window = 24h});
    Decision decision;
    CHECK(bound.apply(Op::check, "a", plan, penstock::store_time, 2, {}, decision) == StoreError::none);
    CHECK(decision.source == Source::store);
    CHECK(bound.apply(Op::check, "a", plan, penstock::store_time, 2, {}, decision) == StoreError::none);
    CHECK(decision == cached(rejected(1, 1, penstock::never, 0s)));
}

// What makes it forget

TEST_CASE("what this process gives back, takes or resets counts at once") {
    Fixture fixture(window);
    fixture.use_up("a");
    CHECK(fixture.hits("a"));
    (void)fixture.limiter.refund("a", 1);
    CHECK(fixture.limiter.check("a") == allowed(10, 0, 1h));
    fixture.use_up("a");
    CHECK(fixture.hits("a"));
    (void)fixture.limiter.charge("a", 5);
    CHECK_FALSE(fixture.hits("a"));
    CHECK(fixture.hits("a"));
    fixture.limiter.reset("a");
    CHECK(fixture.limiter.check("a") == allowed(10, 9, 1h));
}

TEST_CASE("a raised limit counts at once, a reset too") {
    Fixture fixture(window);
    fixture.use_up("a");
    CHECK(fixture.limiter.check("a").source == Source::denied_cache);
    fixture.limiter.configure({.limit = 20, .window = 1h});
    CHECK(fixture.limiter.check("a") == allowed(20, 9, 1h));
    CHECK(fixture.limiter.check("a", 9) == allowed(20, 0, 1h));
    CHECK(fixture.limiter.check("a") == rejected(20, 0, 1h, 1h));
    CHECK(fixture.limiter.check("a") == cached(rejected(20, 0, 1h, 1h)));
    fixture.limiter.reset("a");
    CHECK(fixture.limiter.check("a") == allowed(20, 19, 1h));
}

TEST_CASE("what another gateway gives back counts when the rejection is too old") {
    Fixture fixture(window);
    Limiter other{window, DeniedCache{fixture.store}, fixture.clock};
    fixture.use_up("a");
    (void)other.refund("a", 1);
    CHECK(fixture.hits("a"));
    fixture.clock.set(1s);
    CHECK(fixture.limiter.check("a").allowed);
}

TEST_CASE("a rejection that was on its way while the client was given something is not kept") {
    Fixture fixture(window);
    const std::array<std::function<void()>, 3> actions{[&] { (void)fixture.limiter.refund("a", 1); },
                                                       [&] { (void)fixture.limiter.charge("a", 1); },
                                                       [&] { fixture.limiter.reset("a"); }};
    for (const auto& action : actions) {
        fixture.limiter.reset("a");
        CHECK(fixture.limiter.check("a", 10).allowed);

        *fixture.store.meanwhile = action;
        CHECK_FALSE(fixture.limiter.check("a").allowed);
        CHECK_FALSE(fixture.hits("a"));

        fixture.limiter.reset("a");
        CHECK(fixture.limiter.check("a", 10).allowed);
        bool told = false;
        fixture.limiter.async_check("a", 1, [&](const Decision& decision) { told = !decision.allowed; });
        action();
        fixture.answer_all();
        CHECK(told);
        CHECK_FALSE(fixture.hits("a"));
    }
}

TEST_CASE("failures, and what stands in for the store, are not remembered") {
    Fixture fixture(window);
    *fixture.store.error = StoreError::timeout;
    CHECK(fixture.limiter.check("a").source == Source::fail_closed);
    CHECK(fixture.limiter.check("a").source == Source::fail_closed);
    fixture.limiter.async_check(
        "a", 1, [](const Decision& decision) { CHECK(decision.source == Source::fail_closed); });
    fixture.answer_all();
    CHECK(fixture.asked() == 3);

    Limiter guarded{
        window, DeniedCache{Guarded{fixture.store, {.on_failure = penstock::Local{.gateways = 10}}}}, fixture.clock};
    CHECK(guarded.check("a") == Decision{.allowed = true, .limit = 1, .reset_after = 1h, .source = Source::fallback});
    for (int i = 0; i < 3; ++i) {
        CHECK(guarded.check("a").source == Source::fallback);
    }
    *fixture.store.error = StoreError::none;
    CHECK(guarded.check("b").source == Source::store);
}

// Batches and handlers

TEST_CASE("a batch is asked for but for those who are known to be rejected, in order") {
    Fixture fixture(FixedWindow{.limit = 2, .window = 1h});
    fixture.use_up("known");
    const std::size_t before = fixture.asked();
    const std::array<Check, 6> checks{{{"known"}, {"a"}, {"a"}, {"known"}, {"a"}, {"known", 2}}};
    std::array<Decision, 6> decisions;
    fixture.limiter.check(checks, decisions);
    CHECK(decisions[0] == cached(rejected(2, 0, 1h, 1h)));
    CHECK(decisions[1] == allowed(2, 1, 1h));
    CHECK(decisions[2] == allowed(2, 0, 1h));
    CHECK(decisions[3] == decisions[0]);
    CHECK(decisions[4] == rejected(2, 0, 1h, 1h));
    CHECK(decisions[5] == rejected(2, 0, 1h, 1h));
    CHECK(fixture.asked() == before + 4);
    CHECK(fixture.hits("a"));
    CHECK(fixture.hits("known", 2));
}

TEST_CASE("a long batch is remembered, each its own") {
    Fixture fixture(FixedWindow{.limit = 1, .window = 1h});
    std::vector<std::string> keys;
    std::vector<Check> checks;
    for (int i = 0; i < 300; ++i) {
        keys.push_back("client " + std::to_string(i));
    }
    for (const std::string& key : keys) {
        checks.push_back({.key = key, .cost = 1});
    }
    std::vector<Decision> decisions(checks.size());
    fixture.limiter.check(checks, decisions);
    fixture.limiter.check(checks, decisions);
    const std::size_t before = fixture.asked();
    fixture.limiter.check(checks, decisions);
    CHECK(fixture.asked() == before);
    for (const Decision& decision : decisions) {
        CHECK(decision == cached(rejected(1, 0, 1h, 1h)));
    }
}

TEST_CASE("what fails of a batch is told by its number") {
    Fixture fixture(window);
    fixture.use_up("known");
    *fixture.store.error = StoreError::unavailable;
    const std::array<Check, 3> checks{{{"a"}, {"known"}, {"b"}}};
    std::array<Decision, 3> decisions;
    fixture.limiter.check(checks, decisions);
    CHECK(decisions[0].source == Source::fail_closed);
    CHECK(decisions[1].source == Source::denied_cache);
    CHECK(decisions[2].source == Source::fail_closed);
}

TEST_CASE("a handler is called at once if the client is known to be rejected") {
    Fixture fixture(window);
    CHECK(fixture.limiter.check("a", 10).allowed);
    std::optional<Decision> told;
    const auto tell = [&](const Decision& decision) { told = decision; };
    fixture.limiter.async_check("a", 1, tell);
    CHECK_FALSE(told.has_value());
    fixture.answer_all();
    CHECK(told == rejected(10, 0, 1h, 1h));
    told.reset();
    fixture.limiter.async_check("a", 1, tell);
    CHECK(told == cached(rejected(10, 0, 1h, 1h)));
}

TEST_CASE("what is given back by way of handlers is forgotten, too") {
    const Remote<FixedWindow> store;
    DeniedCache<Remote<FixedWindow>>::Bound<FixedWindow> bound{DeniedCache{store}};
    const auto plan = penstock::plan(window);
    Decision decision;
    CHECK(bound.apply(Op::charge, "a", plan, 0, 10, {}, decision) == StoreError::none);
    CHECK(bound.apply(Op::check, "a", plan, 0, 1, {}, decision) == StoreError::none);
    int told = 0;
    bound.async_apply(Op::refund, "a", plan, 0, 1, [&](StoreError error, const Decision& answer) {
        CHECK(error == StoreError::none);
        CHECK(answer == allowed(10, 1, 1h));
        ++told;
    });
    store.answers->front()();
    CHECK(told == 1);
    CHECK(bound.apply(Op::check, "a", plan, 0, 1, {}, decision) == StoreError::none);
    CHECK(decision == allowed(10, 0, 1h));
}

TEST_CASE("a handler may outlive its limiter") {
    const Remote<FixedWindow> store;
    bool told = false;
    {
        Limiter limiter{window, DeniedCache{store}, ManualClock{}};
        limiter.async_check("a", 11, [&](const Decision& decision) { told = decision.retry_after == penstock::never; });
    }
    store.answers->front()();
    CHECK(told);
}

TEST_CASE("nodes and the meaning of failures are those of the storage beneath") {
    const DeniedCache<Remote<FixedWindow>>::Bound<FixedWindow> bound{DeniedCache{Remote<FixedWindow>{}}};
    CHECK(bound.node_of("four", 0) == 4);
    CHECK(bound.failed(StoreError::timeout).limit == 77);
    const DeniedCache<LocalStorage>::Bound<FixedWindow> local{DeniedCache{LocalStorage{}}};
    CHECK(local.node_of("four", 0) == 0);
    CHECK(local.failed(StoreError::timeout).source == Source::fail_open);
}

TEST_CASE("around a storage of this process it changes nothing but the source") {
    const ManualClock clock;
    Limiter plain{bucket, LocalStorage{}, clock};
    Limiter guarded{bucket, DeniedCache{LocalStorage{}}, clock};
    for (int i = 0; i < 50; ++i) {
        Decision decision = guarded.check("a");
        decision.source = Source::store;
        CHECK(decision == plain.check("a"));
        clock.advance(70ms);
    }
    CHECK(guarded.storage().stats().hits > 30);
}

// Plans

template <class Algorithm>
std::uint64_t hash_of(const Algorithm& algorithm) {
    return penstock::detail::plan_hash<Algorithm>(penstock::plan(algorithm));
}

TEST_CASE("plans that differ in any parameter are told apart") {
    const TokenBucket other{.capacity = 2, .refill = penstock::per(1, 500ms)};
    CHECK(hash_of(bucket) == hash_of(bucket));
    CHECK(hash_of(bucket) == hash_of(TokenBucket{.capacity = 1, .refill = penstock::per_second(2)}));
    CHECK(hash_of(bucket) != hash_of(other));
    CHECK(hash_of(bucket) != hash_of(TokenBucket{.capacity = 1, .refill = penstock::per(1, 501ms)}));
    CHECK(hash_of(AllOf{bucket, other}) != hash_of(AllOf{other, bucket}));
    CHECK(hash_of(window) != hash_of(FixedWindow{.limit = 10, .window = 2h}));
    CHECK(hash_of(window) != hash_of(FixedWindow{.limit = 10, .window = 1h, .offset = 1us}));
    CHECK(hash_of(window) != hash_of(FixedWindow{.limit = 10, .window = 1h, .align = penstock::Align::staggered}));
    CHECK(hash_of(SlidingWindow{.limit = 10, .window = 1h}) !=
          hash_of(SlidingWindow{.limit = 10, .window = 1h, .align = penstock::Align::staggered}));
}

/// Lets nobody pass. Its plan has padding, so that equal plans need not have equal bytes.
struct Closed {
    std::uint64_t units = 0;
    bool really = true;

    struct State {};

    static Decision step(State&, const Plan<Closed>& plan, Micros, std::uint64_t cost, Micros) noexcept {
        return {.allowed = cost == 0, .limit = plan.units, .retry_after = cost == 0 ? 0s : 1h};
    }
};

TEST_CASE("an algorithm of one's own works if its plan can be told from others, else all is for the store") {
    Fixture quota(support::Quota{.units = 1});
    quota.use_up("a");
    CHECK(quota.hits("a"));
    CHECK_FALSE(quota.hits("b"));

    Fixture closed(Closed{});
    for (std::size_t i = 1; i < 4; ++i) {
        CHECK_FALSE(closed.hits("a"));
        const std::array<Check, 2> checks{{{"a"}, {"b"}}};
        std::array<Decision, 2> decisions;
        closed.limiter.check(checks, decisions);
        int told = 0;
        closed.limiter.async_check("a", 1, [&](const Decision& decision) { told += decision.retry_after == 1h; });
        closed.answer_all();
        CHECK(told == 1);
        CHECK(closed.asked() == 4 * i);
    }
}

// Size

TEST_CASE("options out of range are refused when a limiter is made of them") {
    const auto refusal = [](const penstock::DeniedCacheOptions& options) {
        return text_of([&] { Limiter{bucket, DeniedCache{LocalStorage{}, options}}; });
    };
    CHECK(refusal({.entries = 0}) == "DeniedCache.entries is 0: allowed is 1 to 1073741824");
    CHECK(refusal({.entries = 1'073'741'825}) == "DeniedCache.entries is 1073741825: allowed is 1 to 1073741824");
    CHECK(refusal({.max_age = 0us}) == "DeniedCache.max_age is 0 us: allowed is 1 us to 3600000000 us");
    CHECK(refusal({.max_age = 1h + 1us}) == "DeniedCache.max_age is 3600000001 us: allowed is 1 us to 3600000000 us");
    CHECK(refusal({.entries = 1, .max_age = 1us}) == "(not refused)");
}

TEST_CASE("as many clients as were asked for are known, and of more the last to come") {
    Fixture fixture(FixedWindow{.limit = 1, .window = 1h}, {.entries = 100});
    const auto key = [](std::uint64_t i) { return "client " + std::to_string(i); };
    for (std::uint64_t i = 0; i < 5000; ++i) {
        fixture.clock.advance(1us);
        CHECK_FALSE(fixture.limiter.check(key(i), 2).allowed);
        CHECK(fixture.hits(key(i), 2));
        const bool right = fixture.limiter.check(key(i)).allowed;
        CHECK(right);
    }
    fixture.clock.advance(10s);
    for (std::uint64_t i = 0; i < 50; ++i) {
        CHECK_FALSE(fixture.hits(key(i), 2));
    }
    for (std::uint64_t i = 0; i < 50; ++i) {
        CHECK(fixture.hits(key(i), 2));
    }
}

// Threads

/// Rejects every check; `limit` tells how often it was reset by then.
struct Epochs {
    std::shared_ptr<std::atomic<std::uint64_t>> resets = std::make_shared<std::atomic<std::uint64_t>>(0);

    template <class Algorithm>
    class Bound {
    public:
        explicit Bound(const Epochs& epochs) : resets_(epochs.resets) {}

        StoreError apply(Op op,
                         std::string_view,
                         const Plan<Algorithm>&,
                         Micros,
                         std::uint64_t,
                         std::chrono::microseconds,
                         Decision& decision) noexcept {
            if (op == Op::reset) {
                resets_->fetch_add(1);
            }
            decision = {.allowed = false, .limit = resets_->load(), .retry_after = 1h};
            return StoreError::none;
        }

    private:
        std::shared_ptr<std::atomic<std::uint64_t>> resets_;
    };
};

TEST_CASE("after a reset no thread is told what the store said before it") {
    Limiter limiter{window, DeniedCache{Epochs{}}, ManualClock{}};
    std::atomic<bool> done{false};
    const auto stale = threads::results_of(4, [&](std::size_t i) {
        int wrong = 0;
        for (std::uint64_t round = 1; i == 0 && round <= 20'000; ++round) {
            limiter.reset("a");
            wrong += limiter.check("a").limit == round ? 0 : 1;
        }
        while (i > 0 && !done) {
            wrong += limiter.check("a").allowed ? 1 : 0;
        }
        done = done || i == 0;
        return wrong;
    });
    CHECK(stale == std::vector<int>{0, 0, 0, 0});
    (void)limiter.check("a");
    CHECK(limiter.check("a").source == penstock::Source::denied_cache);
}

TEST_CASE("every check is a hit or a miss, whatever thread it comes from") {
    Limiter limiter{window, DeniedCache{LocalStorage{}}, ManualClock{}};
    threads::together(4, [&](std::size_t i) {
        for (int round = 0; round < 5000; ++round) {
            (void)limiter.check(round % 2 == 0 ? "shared" : "own " + std::to_string(i));
        }
    });
    const penstock::DeniedCacheStats stats = limiter.storage().stats();
    CHECK(stats.hits + stats.misses == 20'000);
    CHECK(stats.hits >= 19'900);
}

}  // namespace
