// SPDX-License-Identifier: MIT
// Gateways that share a store and take several units at a time from it.
#include <penstock/guard/leased.hpp>

#include "../../support/archetypes.hpp"
#include "../../support/expect.hpp"
#include "../../support/refusal.hpp"
#include "../../support/shared_storage.hpp"

#include <penstock/guard/guarded.hpp>
#include <penstock/guard/shed.hpp>
#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using expect::allowed_of;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Leased;
using penstock::LeasedOptions;
using penstock::LeasedStats;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::Op;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using Store = support::SharedStorage<>;

constexpr FixedWindow window{.limit = 1000, .window = 1h};

/// A gateway with leases, and one without that tells what the store has.
template <class Algorithm>
struct Fixture {
    explicit Fixture(const Algorithm& algorithm, const LeasedOptions& options = {.size = 8})
        : limiter(algorithm, Leased{store, options}, clock), plain(algorithm, store, clock) {}

    /// How many checks of cost 1 are allowed, one after the other.
    std::uint64_t use(std::uint64_t checks) { return allowed_of(checks, limiter, "key"); }

    [[nodiscard]] std::uint64_t remaining(std::string_view key = "key") { return plain.peek(key, 0).remaining; }
    [[nodiscard]] LeasedStats stats() const { return limiter.storage().stats(); }
    [[nodiscard]] std::uint64_t checks() const { return store.calls(Op::check); }

    /// Comes with other clients until one meets each shard.
    void touch_all_shards() {
        for (int i = 0; i < 1500; ++i) {
            (void)limiter.check("other " + std::to_string(i));
        }
    }

    ManualClock clock;
    Store store;
    Limiter<Algorithm, Leased<Store>, ManualClock> limiter;
    Limiter<Algorithm, Store, ManualClock> plain;
};

TEST_CASE("a client that comes often is asked for ever more seldom") {
    Fixture gateway(window);
    std::vector<std::uint64_t> calls;
    for (int i = 0; i < 31; ++i) {
        CHECK(gateway.use(1) == 1);
        calls.push_back(gateway.checks());
    }
    // 1, then 2, 4, and then 8 at a time.
    CHECK(calls == std::vector<std::uint64_t>{1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5,
                                              5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6});
    CHECK(gateway.remaining() == 1000 - 31);
    CHECK(gateway.stats().asks == 6);
    CHECK(gateway.stats().served == 25);
    CHECK(gateway.stats().taken == 31);
    CHECK(gateway.stats().leases == 1);
}

TEST_CASE("a check that is served here looks like one of the store's") {
    Fixture gateway(window);
    gateway.clock.advance(1min);
    CHECK(gateway.use(1) == 1);
    const Decision asked = gateway.limiter.check("key");
    CHECK(asked == Decision{.allowed = true, .limit = 1000, .remaining = 998, .reset_after = 59min});
    gateway.clock.advance(1ms);
    const Decision served = gateway.limiter.check("key");
    CHECK(served ==
          Decision{
              .allowed = true, .limit = 1000, .remaining = 997, .reset_after = 59min - 1ms, .source = Source::lease});
    CHECK(gateway.limiter.check("key", 0).remaining == 997);
    CHECK(gateway.checks() == 2);
}

TEST_CASE("a client's first check of cost 0 is the store's to answer") {
    Fixture gateway(window);
    CHECK(gateway.limiter.check("key", 0).source == Source::store);
    CHECK(gateway.checks() == 1);
    CHECK(gateway.use(1) == 1);
    CHECK(gateway.limiter.check("key", 0).source == Source::lease);
}

TEST_CASE("a cost above what a lease can hold goes to the store, and leaves the lease alone") {
    Fixture gateway(window);
    CHECK(gateway.use(4) == 4);  // 3 are left
    CHECK(gateway.limiter.check("key", 9).allowed);
    CHECK(gateway.remaining() == 1000 - 7 - 9);
    CHECK(gateway.use(3) == 3);
    CHECK(gateway.checks() == 4);
}

TEST_CASE("limits too small for leases are checked one by one") {
    Fixture gateway(FixedWindow{.limit = 159, .window = 1h});
    CHECK(gateway.use(159) == 159);
    CHECK(gateway.checks() == 159);
    CHECK(gateway.use(2) == 0);
    CHECK(gateway.checks() == 161);
    CHECK(gateway.stats().leases == 0);
}

TEST_CASE("an algorithm that tells no limit is checked one by one") {
    const ManualClock clock;
    const Store store;
    Limiter limiter{support::Quota{1000}, Leased{store, {.size = 8}}, clock};
    CHECK(allowed_of(20, limiter, "key") == 20);
    CHECK(store.calls() == 20);
}

TEST_CASE("under another plan the lease's units go back, and it begins anew") {
    Fixture gateway(window);
    CHECK(gateway.use(4) == 4);
    CHECK(gateway.remaining() == 1000 - 7);
    const auto other = penstock::plan(FixedWindow{.limit = 2000, .window = 1h});
    CHECK(gateway.limiter.check("key", other).source == Source::store);
    CHECK(gateway.remaining() == 1000 - 5);
    CHECK(gateway.store.calls(Op::refund) == 1);
    CHECK(gateway.stats().returned == 3);
}

TEST_CASE("what an idle client left goes back with a later call, and the next lease begins with what was used") {
    Fixture gateway(window, {.size = 50});
    CHECK(gateway.use(33) == 33);  // 63 were taken
    gateway.clock.advance(1s);
    CHECK(gateway.remaining() == 1000 - 63);
    gateway.touch_all_shards();
    CHECK(gateway.remaining() == 1000 - 33);
    CHECK(gateway.stats().returned == 30);
    const std::uint64_t before = gateway.remaining();
    CHECK(gateway.limiter.check("key").source == Source::store);
    CHECK(gateway.remaining() == before - 33);
}

TEST_CASE("a client that comes back within the time keeps its lease") {
    Fixture gateway(window);
    CHECK(gateway.use(4) == 4);
    gateway.clock.advance(1s - 1us);
    gateway.touch_all_shards();
    CHECK(gateway.limiter.check("key").source == Source::lease);
    CHECK(gateway.stats().returned == 0);
}

TEST_CASE("what ends with its window is dropped, not given back to the next") {
    Fixture gateway(FixedWindow{.limit = 1000, .window = 1s});
    CHECK(gateway.use(4) == 4);
    gateway.clock.advance(1s);
    CHECK(gateway.limiter.check("key").source == Source::store);
    CHECK(gateway.stats().dropped == 3);
    CHECK(gateway.stats().returned == 0);
    gateway.touch_all_shards();
    CHECK(gateway.store.calls(Op::refund) == 0);
}

TEST_CASE("a sliding window's units are served until they weigh no more, but given back only in their own window") {
    const SlidingWindow sliding{.limit = 1000, .window = 10s};
    Fixture gateway(sliding);
    CHECK(gateway.use(4) == 4);
    gateway.clock.set(10s);
    CHECK(gateway.limiter.check("key").source == Source::lease);
    gateway.clock.set(11s);
    gateway.touch_all_shards();
    CHECK(gateway.store.calls(Op::refund) == 0);
    CHECK(gateway.stats().dropped == 2);

    Fixture other(sliding);
    CHECK(other.use(4) == 4);
    other.clock.set(10s - 1us);
    other.touch_all_shards();
    CHECK(other.stats().returned == 3);
}

TEST_CASE("what several windows gave is never given back") {
    Fixture gateway(AllOf{window, FixedWindow{.limit = 2000, .window = 2h}});
    CHECK(gateway.use(4) == 4);
    gateway.clock.advance(1s);
    gateway.touch_all_shards();
    CHECK(gateway.stats().dropped == 3);
    CHECK(gateway.store.calls(Op::refund) == 0);
}

TEST_CASE("a reset drops the lease, as the store forgets the client") {
    Fixture gateway(window);
    CHECK(gateway.use(4) == 4);
    gateway.limiter.reset("key");
    CHECK(gateway.remaining() == 1000);
    CHECK(gateway.stats().dropped == 3);
    CHECK(gateway.stats().leases == 0);
    CHECK(gateway.limiter.check("key").source == Source::store);
    CHECK(gateway.store.calls(Op::refund) == 0);
}

TEST_CASE("of more clients than there are entries, those that make place give back what they hold") {
    Fixture gateway(window, {.size = 8, .entries = 64});
    CHECK(gateway.use(4) == 4);
    gateway.touch_all_shards();
    CHECK(gateway.stats().leases <= 64);
    CHECK(gateway.remaining() == 1000 - 4);
    CHECK(gateway.stats().returned == 3);
}

TEST_CASE("a limiter gives all back when it is destroyed") {
    const ManualClock clock;
    const Store store;
    Limiter plain{window, store, clock};
    {
        Limiter limiter{window, Leased{store, {.size = 8}}, clock};
        for (int i = 0; i < 100; ++i) {
            CHECK(allowed_of(4, limiter, "key " + std::to_string(i)) == 4);
        }
        CHECK(plain.peek("key 0", 0).remaining == 1000 - 7);
    }
    for (int i = 0; i < 100; ++i) {
        CHECK(plain.peek("key " + std::to_string(i), 0).remaining == 1000 - 4);
    }
}

TEST_CASE("a limiter that is destroyed gives up on a store that fails") {
    const ManualClock clock;
    const Store store;
    {
        Limiter limiter{window, Leased{store, {.size = 8}}, clock};
        for (int i = 0; i < 100; ++i) {
            CHECK(allowed_of(4, limiter, "key " + std::to_string(i)) == 4);
        }
        store.fail(StoreError::timeout);
    }
    CHECK(store.calls(Op::refund) == 1);
}

TEST_CASE("a client over its limit costs the store one call in max_age") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 10s});
    CHECK(gateway.use(1000) == 160);
    const std::uint64_t before = gateway.checks();
    for (int i = 0; i < 10'000; ++i) {  // the last second of them is the next window's
        gateway.clock.set(i * 900us);
        const Decision decision = gateway.limiter.check("key");
        CHECK_FALSE(decision.allowed);
        CHECK(decision.retry_after == 10s - i * 900us);
    }
    CHECK(gateway.checks() - before <= 9);
    gateway.clock.set(10s);
    CHECK(gateway.use(1) == 1);
}

TEST_CASE("a rejection ends with its retry_after, if that is sooner, to the microsecond") {
    Fixture gateway(TokenBucket{.capacity = 160, .refill = penstock::per_second(2)});
    CHECK(gateway.use(1000) == 160);
    const std::uint64_t before = gateway.checks();
    CHECK(gateway.limiter.check("key").retry_after == 500ms);
    gateway.clock.advance(500ms - 1us);
    const Decision decision = gateway.limiter.check("key");
    CHECK(decision.retry_after == 1us);
    CHECK(decision.source == Source::lease);
    CHECK(gateway.checks() == before);
    gateway.clock.advance(1us);
    CHECK(gateway.use(2) == 1);
}

TEST_CASE("what was rejected is told for that cost alone: others wait less, or longer, or for ever") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 1h});
    CHECK(gateway.limiter.check("key", 158).allowed);
    CHECK_FALSE(gateway.limiter.check("key", 3).allowed);
    CHECK(gateway.limiter.check("key", 3).source == Source::lease);
    CHECK(gateway.limiter.check("key", 161).retry_after == penstock::never);
    CHECK(gateway.limiter.check("key", 2).allowed);
}

TEST_CASE("a bucket beside a window ends no lease: who asks evenly gets all of the window") {
    const ManualClock clock;
    const Store store;
    const penstock::AllOf both{penstock::TokenBucket{.capacity = 100, .refill = penstock::per_second(100)},
                               FixedWindow{.limit = 3000, .window = 1h}};
    Limiter limiter{both, Leased{store, {.size = 5}}, clock};
    std::uint64_t allowed = 0;
    for (int i = 0; i < 3000; ++i) {
        allowed += limiter.check("key").allowed ? 1 : 0;
        clock.advance(100ms);
    }
    CHECK(allowed >= 2990);
}

TEST_CASE("a cost that can never pass is rejected here with never") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 1h});
    CHECK(gateway.limiter.check("key", 161).retry_after == penstock::never);
    CHECK(gateway.limiter.check("key", 161).source == Source::lease);
    gateway.clock.advance(10ms);
    CHECK(gateway.limiter.check("key", 161).retry_after == penstock::never);
    CHECK(gateway.limiter.check("key", 160).allowed);
}

TEST_CASE("where the store has less than a take it gives what it has, and then rejects as if nobody had leases") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 1h});
    CHECK(gateway.use(15) == 15);  // the next take is 8
    CHECK(gateway.plain.check("key", 140).allowed);
    CHECK(gateway.use(5) == 5);
    CHECK(gateway.remaining() == 0);
    CHECK(gateway.checks() == 4 + 1 + 2);
    CHECK(gateway.limiter.check("key") ==
          Decision{.allowed = false, .limit = 160, .remaining = 0, .retry_after = 1h, .reset_after = 1h});
}

TEST_CASE("a wait that the store tells is that of the caller's cost, not of a take") {
    Fixture gateway(TokenBucket{.capacity = 160, .refill = penstock::per_second(1)});
    CHECK(gateway.use(15) == 15);
    CHECK(gateway.plain.check("key", 145).allowed);
    CHECK(gateway.limiter.check("key", 3).retry_after == 3s);
}

TEST_CASE("peek adds what is held here to what the store has") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 1h});
    CHECK(gateway.use(4) == 4);
    CHECK(gateway.limiter.peek("key").remaining == 155);
    CHECK(gateway.plain.check("key", 153).allowed);
    CHECK(gateway.limiter.peek("key", 3) == expect::allowed(0).retry_after(0s));
    CHECK(gateway.limiter.peek("key", 4) == expect::rejected(1h).remaining(3));
    const auto other = penstock::plan(FixedWindow{.limit = 161, .window = 1h});
    CHECK(gateway.limiter.peek("key", other, 0).remaining == 1);
    gateway.clock.advance(1h);
    CHECK(gateway.limiter.peek("key").remaining == 159);
    gateway.store.fail(StoreError::timeout);
    CHECK(gateway.limiter.peek("key").source == Source::fail_closed);
}

TEST_CASE("refund, charge and reserve are the store's, and after a refund it is asked again") {
    Fixture gateway(TokenBucket{.capacity = 160, .refill = penstock::per_hour(1)});
    CHECK(gateway.use(1000) == 160);
    CHECK(gateway.limiter.refund("key", 2).remaining == 2);
    CHECK(gateway.use(3) == 2);
    CHECK_FALSE(gateway.limiter.charge("key", 1).allowed);
    CHECK(gateway.limiter.reserve("key", 3h).wait == 2h);
}

TEST_CASE("while the store fails the lease is served, and then what a failure means") {
    Fixture gateway(window);
    CHECK(gateway.use(4) == 4);
    gateway.store.fail(StoreError::timeout);
    CHECK(gateway.use(3) == 3);
    CHECK(gateway.limiter.check("key").source == Source::fail_closed);
    gateway.store.fail(StoreError::none);
    CHECK(gateway.use(1) == 1);
}

TEST_CASE("a guard around it hears that the store fails") {
    const ManualClock clock;
    const Store store;
    Limiter limiter{
        window, penstock::Guarded{Leased{store, {.size = 8}}, {.on_failure = penstock::Local{.gateways = 1}}}, clock};
    CHECK(allowed_of(4, limiter, "key") == 4);
    store.fail(StoreError::timeout);
    CHECK(limiter.check("key").source == Source::lease);
    CHECK(allowed_of(2, limiter, "key") == 2);
    CHECK(limiter.check("key").source == Source::fallback);
    CHECK(limiter.storage().inner().inner().failed(StoreError::timeout).source == Source::fail_closed);
    CHECK(limiter.storage().node_of("key", 0) == 0);
}

TEST_CASE("what another admits in the store's stead is not held, and nothing of it is given back to the store") {
    const ManualClock clock;
    const Store store;
    Limiter plain{window, store, clock};
    {
        Limiter limiter{window,
                        Leased{penstock::Guarded{store, {.on_failure = penstock::Local{.gateways = 2}}}, {.size = 8}},
                        clock};
        CHECK(allowed_of(3, limiter, "key") == 3);
        store.fail(StoreError::timeout);
        for (int i = 0; i < 10; ++i) {
            CHECK(limiter.check("key").source == Source::fallback);
        }
        CHECK(limiter.storage().stats().taken == 3);
        CHECK(allowed_of(1000, limiter, "key") >= 500 - 10 - 8);  // a half of 1000, and what was under way at first
        store.fail(StoreError::none);
    }
    CHECK(store.calls(Op::refund) == 0);
    CHECK(plain.peek("key", 0).remaining == 1000 - 3);
}

TEST_CASE("load is shed where the storage beneath does so, by the priorities of checks") {
    const ManualClock clock;
    const Store store;
    Limiter limiter{window, Leased{penstock::Shed{store, {.in_flight = 1}}, {.size = 8}}, clock};
    CHECK_FALSE(limiter.storage().inner().stats().shed > 0);
    CHECK(limiter.check(Check{.key = "key", .priority = penstock::Priority::low}).allowed);
    CHECK(allowed_of(5, limiter, "key") == 5);
}

TEST_CASE("a batch is decided in order, from leases and from the store") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 1h}, {.size = 8});
    CHECK(gateway.use(4) == 4);  // 3 are left
    CHECK(gateway.limiter.check("spent", 160).allowed);
    std::vector<Check> checks(150, Check{.key = "key"});
    checks.push_back({.key = "spent"});
    checks.push_back({.key = "spent"});
    checks.push_back({.key = "key", .cost = 6});
    checks.push_back({.key = "key", .cost = 3});
    checks.push_back({.key = "key", .cost = 0});
    std::vector<Decision> decisions(checks.size());
    gateway.limiter.check(checks, decisions);
    const auto is_allowed = [](const Decision& decision) { return decision.allowed; };
    CHECK(std::all_of(decisions.begin(), decisions.begin() + 150, is_allowed));
    CHECK(decisions[2].source == Source::lease);
    CHECK(decisions[3].source == Source::store);
    CHECK_FALSE(decisions[150].allowed);
    CHECK_FALSE(decisions[151].allowed);
    CHECK(decisions[152].allowed);
    CHECK_FALSE(decisions[153].allowed);
    CHECK(decisions[154].allowed);
}

TEST_CASE("of a batch those without an answer are told what a failure means") {
    Fixture gateway(window);
    CHECK(gateway.use(4) == 4);
    gateway.store.fail(StoreError::timeout);
    std::array<Check, 5> checks{};
    checks.fill({.key = "key"});
    std::array<Decision, 5> decisions{};
    gateway.limiter.check(checks, decisions);
    CHECK(decisions[2].source == Source::lease);
    CHECK(decisions[3].source == Source::fail_closed);
    CHECK(decisions[4].source == Source::fail_closed);
}

TEST_CASE("a batch under a plan without leases is the store's") {
    Fixture gateway(FixedWindow{.limit = 100, .window = 1h});
    std::vector<Check> checks(110, Check{.key = "key"});
    std::vector<Decision> decisions(checks.size());
    gateway.limiter.check(checks, decisions);
    CHECK(decisions[99].allowed);
    CHECK_FALSE(decisions[100].allowed);
    CHECK(gateway.checks() == 110);
}

TEST_CASE("units are used, given back, dropped or held, and none is lost count of") {
    Fixture gateway(window);
    std::uint64_t used = 0;
    for (int i = 0; i < 300; ++i) {
        gateway.clock.advance(std::chrono::milliseconds{i * 7});
        used += gateway.use(static_cast<std::uint64_t>(i % 5));
    }
    gateway.limiter.reset("key");
    const LeasedStats stats = gateway.stats();
    CHECK(stats.taken == used + stats.returned + stats.dropped);
    CHECK(stats.dropped > 0);
}

TEST_CASE("gateways that share a bucket hold no more than their leases on top of it") {
    const ManualClock clock;
    const Store store;
    const TokenBucket shared{.capacity = 100, .refill = penstock::per_second(100)};
    using Gateway = Limiter<TokenBucket, Leased<Store>, ManualClock>;
    std::vector<std::unique_ptr<Gateway>> gateways;
    for (int i = 0; i < 4; ++i) {
        const Leased leased{store, {.size = 10, .gateways = 4, .largest_share = 40}};
        gateways.push_back(std::make_unique<Gateway>(shared, leased, clock));
        CHECK(gateways.back()->check("key").allowed);
    }
    clock.advance(1s);
    std::uint64_t allowed = 0;
    for (const auto& gateway : gateways) {
        allowed += allowed_of(200, *gateway, "key");
    }
    CHECK(allowed >= 100);
    CHECK(allowed <= 140);
    for (const auto& gateway : gateways) {
        CHECK_FALSE(gateway->check("key").allowed);
    }
}

TEST_CASE("a clock that is set back mints nothing") {
    Fixture gateway(window);
    gateway.clock.set(10min);
    CHECK(gateway.use(4) == 4);
    gateway.clock.set(0s);
    gateway.touch_all_shards();
    CHECK(gateway.use(2000) == 996);
}

TEST_CASE("it works over the storage of one process, too") {
    const ManualClock clock;
    Limiter limiter{window, Leased{LocalStorage{{.max_keys = 100}}, {.size = 8}}, clock};
    CHECK(allowed_of(2000, limiter, "key") == 1000);
    CHECK(limiter.storage().stats().asks < 1000 / 8 + 10);
}

TEST_CASE("options out of range are refused when it is made") {
    CHECK(support::text_of([] { Leased{LocalStorage{}, {.size = 0}}; }) == "Leased.size is 0: allowed is 1 to 1000000");
}

TEST_CASE("what an idle client holds goes back whoever else comes") {
    const ManualClock clock;
    const Store store;
    Limiter limiter{window, Leased{store, {.size = 8}}, clock};
    CHECK(allowed_of(4, limiter, "idle") == 4);
    REQUIRE(limiter.storage().stats().taken == 7);
    clock.advance(1s);
    CHECK(allowed_of(600, limiter, "busy") == 600);
    CHECK(limiter.storage().stats().returned == 3);
}

}  // namespace
