// SPDX-License-Identifier: MIT
// A hot key over several sub-keys: together they admit what the limit does, and no client can reach another's.
#include <penstock/guard/split.hpp>

#include "../../support/flaky_storage.hpp"

#include "../../support/decisions.hpp"
#include "../../support/print.hpp"
#include "../../support/refusal.hpp"
#include "../../support/threads.hpp"

#include <penstock/guard/denied_cache.hpp>
#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::Micros;
using penstock::Op;
using penstock::Plan;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::Split;
using penstock::StoreError;
using penstock::TokenBucket;
using support::allowed;
using support::rejected;
using support::text_of;

/// A store that gateways share, which counts what it is asked of each key and tells handlers when the test says so.
template <class Only>
class Remote {
public:
    struct Store {
        LocalStorage::Bound<Only> table{LocalStorage{{.max_keys = 1000, .seed = 1}}};
        std::mutex mutex{};
        std::map<std::string, int, std::less<>> asked{};  // and the rest: under the mutex
        std::map<std::string, StoreError, std::less<>> errors{};
        std::deque<std::function<void()>> pending{};
    };

    std::shared_ptr<Store> store = std::make_shared<Store>();

    [[nodiscard]] int asked() const {
        const std::lock_guard lock(store->mutex);
        int sum = 0;
        for (const auto& [key, count] : store->asked) {
            sum += count;
        }
        return sum;
    }

    /// Answers the oldest call of those that do not wait.
    bool answer() const {
        std::function<void()> oldest;
        {
            const std::lock_guard lock(store->mutex);
            if (store->pending.empty()) {
                return false;
            }
            oldest = std::move(store->pending.front());
            store->pending.pop_front();
        }
        oldest();
        return true;
    }

    int answer_all() const {
        int answered = 0;
        while (answer()) {
            ++answered;
        }
        return answered;
    }

    /// A client's state as it is in the store.
    [[nodiscard]] Decision look(std::string_view key, const Only& algorithm) const {
        Decision decision;
        (void)store->table.apply(Op::peek, key, penstock::plan(algorithm), 0, 0, {}, decision);
        return decision;
    }

    template <class Algorithm>
    class Bound {
    public:
        explicit Bound(const Remote& remote) : store_(remote.store) {}

        StoreError apply(Op op,
                         std::string_view key,
                         const Plan<Algorithm>& plan,
                         Micros now,
                         std::uint64_t cost,
                         std::chrono::microseconds max_wait,
                         Decision& decision) noexcept {
            return decide(*store_, op, key, plan, now, cost, max_wait, decision);
        }

        template <class Handler>
        void async_apply(Op op,
                         std::string_view key,
                         const Plan<Algorithm>& plan,
                         Micros now,
                         std::uint64_t cost,
                         Handler handler) noexcept {
            const auto shared = std::make_shared<Handler>(std::move(handler));  // std::function wants copies
            const std::lock_guard lock(store_->mutex);
            store_->pending.push_back([store = store_, op, own_key = std::string(key), plan, now, cost, shared] {
                Decision decision;
                const StoreError error = decide(*store, op, own_key, plan, now, cost, {}, decision);
                (*shared)(error, decision);
            });
        }

        [[nodiscard]] Decision failed(StoreError) const noexcept {
            return {.limit = 77, .source = Source::fail_closed};
        }
        [[nodiscard]] std::size_t node_of(std::string_view key, Micros) const noexcept { return key.size(); }

    private:
        static StoreError decide(Store& store,
                                 Op op,
                                 std::string_view key,
                                 const Plan<Algorithm>& plan,
                                 Micros now,
                                 std::uint64_t cost,
                                 std::chrono::microseconds max_wait,
                                 Decision& decision) noexcept {
            {
                const std::lock_guard lock(store.mutex);
                ++store.asked[std::string(key)];
                if (const auto error = store.errors.find(key); error != store.errors.end()) {
                    return error->second;
                }
            }
            return store.table.apply(op, key, plan, now, cost, max_wait, decision);
        }

        std::shared_ptr<Store> store_;
    };
};

bool is_hot(std::string_view key) {
    return key.starts_with("hot");
}

std::string sub_key(std::uint64_t i) {
    return "hot:split:" + std::to_string(i);
}

template <class Algorithm>
struct Fixture {
    explicit Fixture(const Algorithm& algorithm, std::uint64_t ways = 8)
        : split(remote, {.ways = ways, .is_hot = is_hot}), limiter(algorithm, split, clock) {}

    /// How many checks pass until none does any more.
    std::uint64_t admitted(std::string_view key, std::uint64_t cost = 1) {
        std::uint64_t admitted = 0;
        for (int rejections = 0; rejections < 300;) {
            const bool passed = limiter.check(key, cost).allowed;
            admitted += passed ? 1 : 0;
            rejections += passed ? 0 : 1;
        }
        return admitted;
    }

    ManualClock clock;
    Remote<Algorithm> remote;
    Split<Remote<Algorithm>> split;
    Limiter<Algorithm, Split<Remote<Algorithm>>, ManualClock> limiter;
};

constexpr FixedWindow window{.limit = 100, .window = 1h};

// Checks

TEST_CASE_TEMPLATE("a hot client is admitted its limit exactly, over all sub-keys",
                   Algorithm,
                   TokenBucket,
                   FixedWindow,
                   SlidingWindow) {
    for (const std::uint64_t limit : {1U, 3U, 8U, 13U, 100U, 1003U}) {
        for (const std::uint64_t ways : {1U, 2U, 7U, 8U, 64U}) {
            CAPTURE(limit);
            CAPTURE(ways);
            Algorithm algorithm;
            if constexpr (std::is_same_v<Algorithm, TokenBucket>) {
                algorithm = {.capacity = limit, .refill = penstock::per_day(1)};
            } else {
                algorithm = {.limit = limit, .window = 1h};
            }
            Fixture fixture(algorithm, ways);
            CHECK(fixture.admitted("hot") <= limit);
            std::uint64_t left = 0;
            for (std::uint64_t i = 0; i < 10'000 && left != limit; ++i) {
                left = limit - fixture.limiter.peek("hot", 0).remaining;
                (void)fixture.limiter.check("hot");
            }
            CHECK(left == limit);
            CHECK_FALSE(fixture.limiter.check("hot").allowed);
        }
    }
}

TEST_CASE("a decision tells the whole limit, and what one sub-key has left") {
    Fixture fixture(window, 4);
    const Decision decision = fixture.limiter.check("hot", 5);
    CHECK(decision == allowed(100, 20, 1h));
}

TEST_CASE("all sub-keys take part, and a rejection tries one more") {
    Fixture fixture(window);
    CHECK(fixture.admitted("hot") == 100);
    CHECK(fixture.remote.store->asked.size() == 8);
    for (std::uint64_t i = 0; i < 8; ++i) {
        CHECK(fixture.remote.store->asked.contains(sub_key(i)));
    }
    const int before = fixture.remote.asked();
    CHECK(fixture.limiter.check("hot") == rejected(100, 0, 1h, 1h));
    CHECK(fixture.remote.asked() == before + 2);
}

TEST_CASE("of two rejections the sooner one is told") {
    Fixture fixture(TokenBucket{.capacity = 2, .refill = penstock::per_second(2)}, 2);
    const auto share = penstock::plan(TokenBucket{.capacity = 1, .refill = penstock::per_second(1)});
    Decision decision;
    (void)fixture.remote.store->table.apply(Op::check, sub_key(0), share, 0, 1, {}, decision);
    fixture.clock.set(400ms);
    CHECK(fixture.limiter.check("hot").allowed);  // the other one, perhaps after a rejection
    for (int i = 0; i < 20; ++i) {
        CHECK(fixture.limiter.check("hot").retry_after == 600ms);
    }
}

TEST_CASE("a cost above one share is never admitted, up to the largest share it is") {
    Fixture fixture(FixedWindow{.limit = 15, .window = 1h});  // one sub-key has 1, the others have 2
    for (int i = 0; i < 50; ++i) {
        CHECK(fixture.limiter.peek("hot", 3).retry_after == penstock::never);
        CHECK(fixture.limiter.check("hot", 3).retry_after == penstock::never);
        CHECK(fixture.limiter.check("hot", 2).retry_after != penstock::never);
    }
    const auto one_of_two = penstock::plan(FixedWindow{.limit = 9, .window = 1h});  // and the others of one
    for (int i = 0; i < 50; ++i) {
        fixture.limiter.reset("hot");
        CHECK(fixture.limiter.check("hot", one_of_two, 2).allowed);
        CHECK(fixture.limiter.check("hot", one_of_two, 3).retry_after == penstock::never);
    }
}

TEST_CASE("a limit below the number of ways has as many sub-keys as units, whatever the limiter's own") {
    Fixture fixture(window);
    const auto small = penstock::plan(FixedWindow{.limit = 3, .window = 1h});
    for (int i = 0; i < 100; ++i) {
        (void)fixture.limiter.check("hot", small);
    }
    CHECK(fixture.remote.store->asked.size() == 3);
    CHECK(fixture.limiter.peek("hot", small) == rejected(3, 0, 1h, 1h));
    CHECK(fixture.limiter.peek("hot") == allowed(100, 96, 1h));
}

TEST_CASE("of several limits each is divided, and the least is told") {
    const AllOf both{FixedWindow{.limit = 40, .window = 1s}, FixedWindow{.limit = 100, .window = 1h}};
    Fixture fixture(both, 4);
    std::uint64_t admitted = 0;
    for (int second = 0; second < 5; ++second) {
        fixture.clock.set(std::chrono::seconds{second});
        const std::uint64_t now = fixture.admitted("hot");
        CHECK(now <= 40);
        admitted += now;
        CHECK(fixture.limiter.check("hot").limit == 40);
    }
    CHECK(admitted == 100);
}

TEST_CASE("turns are given as by any token bucket, within the debt of one share") {
    Fixture fixture(TokenBucket{.capacity = 8, .refill = penstock::per_second(8)}, 4);
    std::uint64_t turns = 0;
    std::chrono::microseconds longest{0};
    for (int i = 0; i < 500; ++i) {
        const penstock::Reservation turn = fixture.limiter.reserve("hot", 1h);
        turns += turn.decision.allowed ? 1 : 0;
        longest = (std::max)(longest, turn.wait);
    }
    CHECK(turns == 16);
    CHECK(longest == 1s);
}

/// So many units a day; it tells of no limit but in its decisions.
struct Ration {
    std::uint64_t units;

    struct State {
        std::uint64_t used;
    };

    [[nodiscard]] Ration share(std::uint64_t i, std::uint64_t n) const noexcept {
        return {units / n + (i + 1 == n ? units % n : 0)};
    }

    friend bool operator==(const Ration&, const Ration&) noexcept = default;

    static Decision step(State& state, const Plan<Ration>& plan, Micros, std::uint64_t cost, Micros) noexcept {
        const std::uint64_t left = plan.units - (std::min)(plan.units, state.used);
        const bool fits = cost <= left;
        state.used += fits ? cost : 0;
        return {.allowed = fits,
                .limit = plan.units,
                .remaining = fits ? left - cost : left,
                .retry_after = fits ? 0us : 24h,
                .reset_after = 24h};
    }
};

TEST_CASE("an algorithm of one's own needs a share, no more") {
    Fixture fixture(Ration{.units = 10}, 4);
    CHECK(fixture.admitted("hot") == 10);
    CHECK(fixture.limiter.check("hot").limit == 10);
    CHECK(fixture.admitted("cold") == 10);
}

// Keys

TEST_CASE("other clients are not touched") {
    Fixture fixture(window);
    Limiter plain{window, LocalStorage{}, fixture.clock};
    for (int i = 0; i < 120; ++i) {
        CHECK(fixture.limiter.check("cold") == plain.check("cold"));
    }
    CHECK(fixture.limiter.refund("cold", 5) == plain.refund("cold", 5));
    CHECK(fixture.limiter.charge("cold", 7) == plain.charge("cold", 7));
    CHECK(fixture.limiter.peek("cold", 3) == plain.peek("cold", 3));
    fixture.limiter.reset("cold");
    CHECK(fixture.limiter.peek("cold") == plain.peek("new"));
    CHECK(fixture.remote.store->asked == std::map<std::string, int, std::less<>>{{"cold", 125}});
}

TEST_CASE("no client can call itself as a sub-key is called, nor as another who tries") {
    Remote<FixedWindow> remote;
    Limiter limiter{
        window, Split{remote, {.is_hot = [](std::string_view key) { return key == "hot"; }}}, ManualClock{}};
    const std::vector<std::string> names{"hot",
                                         "hot:split:0",
                                         "hot:split:00",
                                         "hot:split:",
                                         "hot:split",
                                         "hot\\:split\\:0:split:",
                                         "hot\\:split\\:0:split:0",
                                         "hot\\:split\\:0",
                                         "hot:0",
                                         ":split:",
                                         "0",
                                         ""};
    for (const std::string& name : names) {
        remote.store->asked.clear();
        (void)limiter.reset(name);
        const std::size_t keys = remote.store->asked.size();
        CHECK(keys == (name == "hot" ? 8 : 1));
    }
    remote.store->asked.clear();
    for (const std::string& name : names) {
        limiter.reset(name);
    }
    CHECK(remote.store->asked.size() == names.size() + 7);
    for (const auto& [key, count] : remote.store->asked) {
        CHECK(count == 1);
    }
    CHECK(remote.store->asked.contains("hot:split:0"));
    CHECK(remote.store->asked.contains("hot\\:split\\:0:split:"));
}

TEST_CASE("hot clients of any name have sub-keys of their own") {
    Remote<FixedWindow> remote;
    Limiter limiter{window, Split{remote, {.ways = 2, .is_hot = [](std::string_view) { return true; }}}, ManualClock{}};
    const std::array<std::string_view, 6> names{"", "a", "a:split:0", "a:split", "a\\", std::string_view("\0", 1)};
    for (const std::string_view name : names) {
        limiter.reset(name);
    }
    CHECK(remote.store->asked.size() == 12);
}

// All sub-keys

TEST_CASE("peek tells the sum of what is left, and lets pass what one sub-key would") {
    Fixture fixture(FixedWindow{.limit = 40, .window = 1h}, 4);
    CHECK(fixture.limiter.peek("hot", 0) == allowed(40, 40, 0s));
    CHECK(fixture.limiter.peek("hot", 10) == allowed(40, 30, 1h));
    CHECK(fixture.limiter.peek("hot", 11) == rejected(40, 40, penstock::never, 0s));
    CHECK(fixture.limiter.check("hot", 10).allowed);
    CHECK(fixture.limiter.check("hot", 7).allowed);
    CHECK(fixture.limiter.peek("hot", 4) == allowed(40, 19, 1h));
    CHECK(fixture.limiter.peek("hot", 0) == allowed(40, 23, 1h));
    for (int i = 0; i < 200; ++i) {
        (void)fixture.limiter.check("hot", 8);
    }
    CHECK(fixture.limiter.peek("hot", 8) == rejected(40, 7, 1h, 1h));
}

TEST_CASE("what is given back goes where most is used, and nowhere more than was") {
    const FixedWindow part{.limit = 10, .window = 1h};
    Fixture fixture(FixedWindow{.limit = 40, .window = 1h}, 4);
    const auto use = [&](std::uint64_t i, std::uint64_t cost) {
        Decision decision;
        (void)fixture.remote.store->table.apply(Op::check, sub_key(i), penstock::plan(part), 0, cost, {}, decision);
    };
    const auto left = [&] {
        std::vector<std::uint64_t> of_each;
        for (std::uint64_t i = 0; i < 4; ++i) {
            of_each.push_back(fixture.remote.look(sub_key(i), part).remaining);
        }
        return of_each;
    };
    use(1, 3);
    use(2, 10);
    use(3, 5);
    CHECK(fixture.limiter.refund("hot", 4) == allowed(40, 26, 1h));
    CHECK(left() == std::vector<std::uint64_t>{10, 7, 4, 5});
    CHECK(fixture.limiter.refund("hot", 8) == allowed(40, 34, 1h));
    CHECK(left() == std::vector<std::uint64_t>{10, 7, 10, 7});
    CHECK(fixture.limiter.refund("hot", 1000) == allowed(40, 40, 0s));
    CHECK(fixture.limiter.refund("hot", 1000) == allowed(40, 40, 0s));

    use(1, 3);
    use(2, 8);
    CHECK(fixture.limiter.charge("hot", 12) == allowed(40, 17, 1h));
    CHECK(left() == std::vector<std::uint64_t>{0, 7, 2, 8});
    CHECK(fixture.limiter.charge("hot", 17) == allowed(40, 0, 1h));
    CHECK(fixture.limiter.charge("hot", 1) == rejected(40, 0, 1h, 1h));
    CHECK(fixture.limiter.charge("hot", 0) == rejected(40, 0, 1h, 1h));
    CHECK(fixture.limiter.refund("hot", 2).remaining == 1);
}

TEST_CASE("a charge past the limit becomes a debt of at most one limit") {
    Fixture fixture(TokenBucket{.capacity = 40, .refill = penstock::per_second(4)}, 4);
    CHECK_FALSE(fixture.limiter.charge("hot", 1000).allowed);
    fixture.clock.set(10s);
    CHECK(fixture.limiter.peek("hot", 0).remaining == 0);
    fixture.clock.set(20s);
    CHECK(fixture.limiter.peek("hot", 0).remaining == 40);
}

TEST_CASE("a reset is for all sub-keys, whatever plans they were used under") {
    Fixture fixture(window);
    fixture.admitted("hot");
    CHECK_FALSE(fixture.limiter.check("hot").allowed);
    fixture.limiter.configure({.limit = 3, .window = 1h});
    fixture.limiter.reset("hot");
    fixture.limiter.configure(window);
    CHECK(fixture.limiter.peek("hot", 0) == allowed(100, 100, 0s));
}

// Failures

TEST_CASE("the failure of the sub-key that was asked is one of the storage") {
    Fixture fixture(window, 1);
    fixture.remote.store->errors[sub_key(0)] = StoreError::timeout;
    const Decision failure{.limit = 77, .source = Source::fail_closed};
    CHECK(fixture.limiter.check("hot") == failure);
    CHECK(fixture.limiter.peek("hot") == failure);
    CHECK(fixture.limiter.refund("hot", 1) == failure);
    const std::array<Check, 3> checks{{{"cold"}, {"hot"}, {"cool"}}};
    std::array<Decision, 3> decisions;
    fixture.limiter.check(checks, decisions);
    CHECK(decisions[0].allowed);
    CHECK(decisions[1] == failure);
    CHECK(decisions[2].allowed);
}

TEST_CASE("if the second sub-key fails the rejection of the first stands") {
    Fixture fixture(FixedWindow{.limit = 2, .window = 1h}, 2);
    CHECK(fixture.admitted("hot") == 2);
    fixture.remote.store->errors[sub_key(1)] = StoreError::timeout;
    int failures = 0;
    int rejections = 0;
    for (int i = 0; i < 200; ++i) {
        const Decision decision = fixture.limiter.check("hot");
        failures += decision.source == Source::fail_closed ? 1 : 0;
        rejections += decision == rejected(2, 0, 1h, 1h) ? 1 : 0;
    }
    CHECK(failures + rejections == 200);
    CHECK(failures > 0);
    CHECK(rejections > 0);
}

TEST_CASE("nothing is taken or given back unless all sub-keys were looked at") {
    Fixture fixture(FixedWindow{.limit = 40, .window = 1h}, 4);
    CHECK(fixture.limiter.charge("hot", 20).allowed);
    fixture.remote.store->errors[sub_key(2)] = StoreError::timeout;
    const int before = fixture.remote.asked();
    CHECK(fixture.limiter.charge("hot", 4).source == Source::fail_closed);
    CHECK(fixture.limiter.refund("hot", 4).source == Source::fail_closed);
    CHECK(fixture.remote.asked() == before + 8);
    fixture.remote.store->errors.clear();
    CHECK(fixture.limiter.peek("hot", 0).remaining == 20);
}

TEST_CASE("a reset goes on past a sub-key that fails") {
    Fixture fixture(FixedWindow{.limit = 40, .window = 1h}, 4);
    CHECK(fixture.admitted("hot") == 40);
    fixture.remote.store->errors[sub_key(1)] = StoreError::timeout;
    fixture.limiter.reset("hot");
    fixture.remote.store->errors.clear();
    CHECK(fixture.limiter.peek("hot", 0).remaining == 30);
}

// Batches and handlers

TEST_CASE("a batch splits what is hot and hands on what is not") {
    Fixture fixture(FixedWindow{.limit = 8, .window = 1h});
    std::vector<Check> checks;
    for (int i = 0; i < 100; ++i) {
        checks.push_back({.key = i % 2 == 0 ? "hot" : "cold"});
    }
    std::vector<Decision> decisions(checks.size());
    fixture.limiter.check(checks, decisions);
    CHECK(fixture.limiter.peek("cold", 0).remaining == 0);
    std::uint64_t hot = 0;
    for (std::size_t i = 0; i < checks.size(); ++i) {
        hot += i % 2 == 0 && decisions[i].allowed ? 1 : 0;
        CHECK(decisions[i].limit == 8);
        CHECK((i % 2 == 0 || decisions[i].allowed == (i < 16)));
    }
    CHECK(hot + fixture.limiter.peek("hot", 0).remaining == 8);
}

TEST_CASE("a handler is told once, of the second sub-key if the first rejects") {
    Fixture fixture(FixedWindow{.limit = 2, .window = 1h}, 2);
    int told = 0;
    std::uint64_t passed = 0;
    for (int i = 0; i < 3; ++i) {
        fixture.limiter.async_check("hot", 1, [&](const Decision& decision) {
            ++told;
            passed += decision.allowed ? 1 : 0;
            CHECK(decision.limit == 2);
        });
    }
    CHECK(told == 0);
    CHECK(fixture.remote.answer_all() >= 4);
    CHECK(told == 3);
    CHECK(passed == 2);

    fixture.remote.store->errors[sub_key(0)] = StoreError::timeout;
    fixture.remote.store->errors[sub_key(1)] = StoreError::timeout;
    fixture.limiter.async_check("hot", 1, [&](const Decision& decision) { told += decision.limit == 0 ? 1 : 0; });
    fixture.remote.answer_all();
    CHECK(told == 4);

    fixture.limiter.async_check("cold", 1, [&](const Decision& decision) { told += decision.remaining == 1 ? 1 : 0; });
    fixture.limiter.async_check("cold:split:1", 1, [&](const Decision& d) { told += d.remaining == 1 ? 1 : 0; });
    fixture.remote.answer_all();
    CHECK(told == 6);
}

TEST_CASE("by way of handlers everything is as without them") {
    const Remote<FixedWindow> remote;
    Split<Remote<FixedWindow>>::Bound<FixedWindow> bound{Split{remote, {.ways = 4, .is_hot = is_hot}}};
    const auto plan = penstock::plan(FixedWindow{.limit = 40, .window = 1h});
    const auto ask = [&](Op op, std::uint64_t cost) {
        std::vector<std::pair<StoreError, Decision>> told;
        bound.async_apply(op, "hot", plan, 0, cost, [&](StoreError error, const Decision& decision) {
            told.emplace_back(error, decision);
        });
        remote.answer_all();
        REQUIRE(told.size() == 1);
        CHECK(told[0].first == StoreError::none);
        return told[0].second;
    };
    CHECK(ask(Op::charge, 12) == allowed(40, 28, 1h));
    CHECK(ask(Op::peek, 10) == allowed(40, 18, 1h));
    CHECK(ask(Op::refund, 5) == allowed(40, 33, 1h));
    CHECK(ask(Op::refund, 100) == allowed(40, 40, 0s));
    CHECK(ask(Op::refund, 1) == allowed(40, 40, 0s));
    CHECK(ask(Op::charge, 41) == rejected(40, 0, 1h, 1h));
    (void)ask(Op::reset, 0);
    CHECK(ask(Op::peek, 0) == allowed(40, 40, 0s));

    remote.store->errors[sub_key(2)] = StoreError::timeout;
    StoreError told = StoreError::none;
    bound.async_apply(Op::charge, "hot", plan, 0, 1, [&](StoreError error, const Decision&) { told = error; });
    remote.answer_all();
    CHECK(told == StoreError::timeout);
}

TEST_CASE("a handler that outlives its limiter is told what is known by then") {
    const Remote<FixedWindow> remote;
    std::optional<Decision> told;
    StoreError error = StoreError::none;
    {
        Split<Remote<FixedWindow>>::Bound<FixedWindow> bound{Split{remote, {.ways = 2, .is_hot = is_hot}}};
        const auto plan = penstock::plan(FixedWindow{.limit = 2, .window = 1h});
        Decision decision;
        CHECK(bound.apply(Op::charge, "hot", plan, 0, 2, {}, decision) == StoreError::none);
        bound.async_apply(Op::check, "hot", plan, 0, 1, [&](StoreError, const Decision& last) { told = last; });
        bound.async_apply(Op::refund, "hot", plan, 0, 1, [&](StoreError last, const Decision&) { error = last; });
    }
    CHECK(remote.answer_all() == 3);
    CHECK(told == rejected(2, 0, 1h, 1h));
    CHECK(error == StoreError::shut_down);
}

TEST_CASE("a limiter ends while handlers are about to ask again") {
    for (int round = 0; round < 300; ++round) {
        const Remote<FixedWindow> remote;
        std::atomic<int> told{0};
        auto limiter = std::make_unique<Limiter<FixedWindow, Split<Remote<FixedWindow>>, ManualClock>>(
            FixedWindow{.limit = 8, .window = 1h}, Split{remote, {.is_hot = is_hot}}, ManualClock{});
        for (int i = 0; i < 40; ++i) {
            limiter->async_check("hot", 1, [&](const Decision&) { ++told; });
        }
        threads::together(2, [&](std::size_t i) {
            if (i == 0) {
                remote.answer_all();
            } else {
                limiter.reset();
            }
        });
        remote.answer_all();
        CHECK(told == 40);
    }
}

TEST_CASE("nodes and the meaning of failures are those of the storage beneath") {
    const Split<Remote<FixedWindow>>::Bound<FixedWindow> bound{Split{Remote<FixedWindow>{}, {.is_hot = is_hot}}};
    CHECK(bound.node_of("four", 0) == 4);
    CHECK(bound.failed(StoreError::timeout).limit == 77);
}

TEST_CASE("a cache beneath knows of each sub-key") {
    Limiter limiter{window, Split{penstock::DeniedCache{LocalStorage{}}, {.is_hot = is_hot}}, ManualClock{}};
    std::uint64_t admitted = 0;
    for (int i = 0; i < 2000; ++i) {
        admitted += limiter.check("hot").allowed ? 1 : 0;
    }
    CHECK(admitted == 100);
    CHECK(limiter.check("hot").source == Source::denied_cache);
    CHECK(limiter.storage().inner().stats().misses == 100 + 8);
}

// Gateways

TEST_CASE("gateways admit the limit together, neither more nor less") {
    const Remote<TokenBucket> remote;
    const Split split{remote, {.is_hot = is_hot}};
    const TokenBucket bucket{.capacity = 1000, .refill = penstock::per_day(1)};
    Limiter first{bucket, split, ManualClock{}};
    Limiter second{bucket, split, ManualClock{}};
    const auto admitted = threads::results_of(4, [&](std::size_t i) {
        std::uint64_t count = 0;
        for (int rejections = 0; rejections < 300;) {
            const bool passed = (i % 2 == 0 ? first : second).check("hot").allowed;
            count += passed ? 1 : 0;
            rejections += passed ? 0 : 1;
        }
        return count;
    });
    CHECK(admitted[0] + admitted[1] + admitted[2] + admitted[3] == 1000);
}

// Options

TEST_CASE("options out of range are refused at once") {
    const auto refusal = [](const penstock::SplitOptions& options) {
        return text_of([&] { (void)Split{LocalStorage{}, options}; });
    };
    CHECK(refusal({.ways = 0, .is_hot = is_hot}) == "Split.ways is 0: allowed is 1 to 64");
    CHECK(refusal({.ways = 65, .is_hot = is_hot}) == "Split.ways is 65: allowed is 1 to 64");
    CHECK(refusal({}) == "Split.is_hot is empty: allowed is a predicate");
    CHECK(refusal({.ways = 1, .is_hot = is_hot}) == "(not refused)");
    CHECK(refusal({.ways = 64, .is_hot = is_hot}) == "(not refused)");
}

TEST_CASE("a handler that is called at once may end the limiter, also after a second try") {
    support::FlakyStorage store;
    using Storage = penstock::Split<penstock::DeniedCache<support::FlakyStorage>>;
    using Owned = penstock::Limiter<penstock::FixedWindow, Storage, penstock::ManualClock>;
    const penstock::ManualClock clock;
    auto limiter = std::make_unique<Owned>(
        penstock::FixedWindow{.limit = 2, .window = 1h},
        Storage(penstock::DeniedCache{store}, {.ways = 2, .is_hot = [](std::string_view) { return true; }}),
        clock);
    for (int i = 0; i < 20; ++i) {
        (void)limiter->check("key");  // until this process knows that both shares are used up
    }
    penstock::Decision told{.allowed = true};
    limiter->async_check("key", 1, [&](const penstock::Decision& decision) {
        told = decision;
        limiter.reset();
    });
    CHECK(limiter == nullptr);
    CHECK_FALSE(told.allowed);
}

}  // namespace
