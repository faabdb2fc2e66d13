// SPDX-License-Identifier: MIT
#include <penstock/storage/local.hpp>

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/clock.hpp>
#include <penstock/limiter.hpp>
#include <penstock/rate.hpp>

#include <doctest/doctest.h>

#include "../../support/archetypes.hpp"
#include "../../support/decisions.hpp"
#include "../../support/ends.hpp"
#include "../../support/print.hpp"
#include "../../support/refusal.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::per;
using penstock::per_hour;
using penstock::per_second;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using support::allowed;
using support::rejected;
using support::text_of;

constexpr TokenBucket bucket{.capacity = 1000, .refill = per_second(1)};
constexpr FixedWindow window{.limit = 5, .window = 1h};

/// A table in which every key may stand in every slot, which makes evictions foreseeable.
constexpr LocalStorage::Options sixteen_slots{.max_bytes = 512};

std::string key(std::uint64_t number) {
    return "client " + std::to_string(number);
}

// Size

TEST_CASE("a table has room for its keys at 70% fill, in whole sets of eight, and for 16 at least") {
    const auto slots = [](std::uint64_t max_keys) {
        return Limiter{bucket, LocalStorage{{.max_keys = max_keys}}}.storage().slots();
    };
    CHECK(slots(1) == 16);
    CHECK(slots(11) == 16);
    CHECK(slots(12) == 24);
    CHECK(slots(700) == 1000);
    CHECK(slots(701) == 1008);
    CHECK(slots(1'000'000) == 1'428'576);
    CHECK(Limiter{bucket}.storage().slots() == 1'428'576);
    CHECK(Limiter{bucket, LocalStorage{}}.storage().slots() == 1'428'576);
}

TEST_CASE("a client takes 32 bytes, with two limits 64, with five 128") {
    const auto bytes_of_16 = [](const auto& algorithm) {
        return Limiter{algorithm, LocalStorage{{.max_keys = 1}}}.storage().bytes();
    };
    CHECK(bytes_of_16(bucket) == 512);
    CHECK(bytes_of_16(window) == 512);
    CHECK(bytes_of_16(SlidingWindow{.limit = 1, .window = 1s}) == 512);
    CHECK(bytes_of_16(support::Quota{.units = 1}) == 512);
    CHECK(bytes_of_16(AllOf{bucket, window}) == 1024);
    CHECK(bytes_of_16(AllOf{bucket, window, window, window, window}) == 2048);
}

TEST_CASE("a table may be sized in bytes, which it does not exceed") {
    const auto bytes = [](std::uint64_t max_bytes) {
        return Limiter{bucket, LocalStorage{{.max_bytes = max_bytes}}}.storage().bytes();
    };
    CHECK(bytes(512) == 512);
    CHECK(bytes(767) == 512);
    CHECK(bytes(768) == 768);
    CHECK(bytes(10'000'000) == 9'999'872);
    CHECK(Limiter{bucket, LocalStorage{{.max_keys = 1, .max_bytes = 1'000'000}}}.storage().slots() == 31'248);
}

TEST_CASE("a table of no keys, or of more than 2^36, is refused") {
    const auto refusal = [](std::uint64_t max_keys) {
        return text_of([&] { Limiter{bucket, LocalStorage{{.max_keys = max_keys}}}; });
    };
    CHECK(refusal(0) == "LocalStorage.max_keys is 0: allowed is 1 to 68719476736");
    CHECK(refusal(68'719'476'737) == "LocalStorage.max_keys is 68719476737: allowed is 1 to 68719476736");
    CHECK(refusal(~std::uint64_t{0}) == "LocalStorage.max_keys is 18446744073709551615: allowed is 1 to 68719476736");
}

TEST_CASE("a table of fewer bytes than 16 slots, or of more than 2^36, is refused") {
    const auto refusal = [](const auto& algorithm, std::uint64_t max_bytes) {
        return text_of([&] { Limiter{algorithm, LocalStorage{{.max_bytes = max_bytes}}}; });
    };
    CHECK(refusal(bucket, 511) == "LocalStorage.max_bytes is 511: allowed is 0, or 512 to 2199023255552");
    CHECK(refusal(bucket, 2'199'023'255'553) ==
          "LocalStorage.max_bytes is 2199023255553: allowed is 0, or 512 to 2199023255552");
    CHECK(refusal(AllOf{bucket, window}, 1023) ==
          "LocalStorage.max_bytes is 1023: allowed is 0, or 1024 to 4398046511104");
    CHECK(refusal(AllOf{bucket, window}, 4'398'046'511'105) ==
          "LocalStorage.max_bytes is 4398046511105: allowed is 0, or 1024 to 4398046511104");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("the largest tables that may be asked for are up to the system") {
    const auto make = [](const LocalStorage::Options& options) {
        try {
            Limiter limiter{bucket, LocalStorage{options}};
            return limiter.check("client").allowed;
        } catch (const std::bad_alloc&) {
            return true;
        }
    };
    CHECK(make({.max_keys = 68'719'476'736}));
    CHECK(make({.max_bytes = 2'199'023'255'552}));
}
#endif

TEST_CASE("a table that has its memory from the start remembers as any other") {
    Limiter limiter{bucket, LocalStorage{{.max_keys = 200'000, .prefault = true}}, ManualClock{}};
    CHECK(limiter.storage().slots() == 285'720);
    CHECK(limiter.check("client", 10) == allowed(1000, 990, 10s));
    CHECK(limiter.check("client", 10) == allowed(1000, 980, 20s));
}

TEST_CASE("options are checked when a limiter is made of them, after its algorithm") {
    const LocalStorage wrong{{.max_keys = 0}};
    CHECK(text_of([&] { Limiter{bucket, wrong}; }) == "LocalStorage.max_keys is 0: allowed is 1 to 68719476736");
    CHECK(text_of([&] { Limiter{TokenBucket{}, wrong}; }) == "TokenBucket.capacity is 0: allowed is 1 to 549755813888");
}

// Room

TEST_CASE_TEMPLATE(
    "as many clients as were asked for are remembered at once", Algorithm, TokenBucket, FixedWindow, support::Quota) {
    Algorithm algorithm;
    if constexpr (std::is_same_v<Algorithm, TokenBucket>) {
        algorithm = {.capacity = 1, .refill = per_hour(1)};
    } else if constexpr (std::is_same_v<Algorithm, FixedWindow>) {
        algorithm = {.limit = 1, .window = 1h};
    } else {
        algorithm = {.units = 1};
    }
    const std::uint64_t max_keys = 10'000;
    Limiter limiter{algorithm, LocalStorage{{.max_keys = max_keys, .seed = 1}}, ManualClock{}};
    for (std::uint64_t i = 0; i < max_keys; ++i) {
        REQUIRE(limiter.check(key(i)).allowed);
    }
    for (std::uint64_t i = 0; i < max_keys; ++i) {
        REQUIRE_FALSE(limiter.check(key(i)).allowed);
    }
    CHECK(limiter.storage().evictions() == 0);
}

TEST_CASE("more clients than there is room for push others out, and are counted") {
    Limiter limiter{bucket, LocalStorage{sixteen_slots}, ManualClock{}};
    for (std::uint64_t i = 0; i < 1000; ++i) {
        CHECK(limiter.check(key(i)).allowed);
    }
    CHECK(limiter.storage().evictions() == 1000 - 16);
    CHECK(limiter.storage().bytes() == 512);
}

TEST_CASE("the client nearest to a fresh one is pushed out first") {
    Limiter limiter{bucket, LocalStorage{sixteen_slots}, ManualClock{}};
    for (std::uint64_t i = 0; i < 15; ++i) {
        CHECK(limiter.check(key(i), 900).allowed);
    }
    CHECK(limiter.check("nearly fresh", 1).allowed);
    CHECK(limiter.storage().evictions() == 0);

    CHECK(limiter.check("newcomer", 900).allowed);
    CHECK(limiter.storage().evictions() == 1);
    CHECK(limiter.peek("nearly fresh", 0).remaining == 1000);
    CHECK(limiter.peek("newcomer", 0).remaining == 100);
    for (std::uint64_t i = 0; i < 15; ++i) {
        CHECK(limiter.peek(key(i), 0).remaining == 100);
    }
}

TEST_CASE("a client that is as good as fresh makes room without being missed") {
    const ManualClock clock;
    Limiter limiter{bucket, LocalStorage{sixteen_slots}, clock};
    for (std::uint64_t i = 0; i < 16; ++i) {
        CHECK(limiter.check(key(i), 10).allowed);
    }
    clock.advance(20s);
    for (std::uint64_t i = 100; i < 116; ++i) {
        CHECK(limiter.check(key(i), 10).allowed);
    }
    CHECK(limiter.storage().evictions() == 0);
    for (std::uint64_t i = 100; i < 116; ++i) {
        CHECK(limiter.peek(key(i), 0).remaining == 990);
    }
}

TEST_CASE("a client that is not quite fresh is not taken for one") {
    const ManualClock clock;
    Limiter limiter{bucket, LocalStorage{sixteen_slots}, clock};
    CHECK(limiter.check("limited", 10).allowed);
    clock.advance(9'999'999us);
    for (std::uint64_t i = 0; i < 15; ++i) {
        CHECK(limiter.check(key(i), 10).allowed);
    }
    CHECK(limiter.peek("limited", 0) == allowed(1000, 999, 1us));
}

TEST_CASE("what takes nothing needs no room") {
    Limiter limiter{bucket, LocalStorage{sixteen_slots}, ManualClock{}};
    for (std::uint64_t i = 0; i < 16; ++i) {
        CHECK(limiter.check(key(i), 900).allowed);
    }
    for (std::uint64_t i = 100; i < 1000; ++i) {
        CHECK(limiter.peek(key(i)).allowed);
        CHECK(limiter.check(key(i), 0).allowed);
        CHECK_FALSE(limiter.check(key(i), 1001).allowed);
        CHECK_FALSE(limiter.reserve(key(i), 1s, 1001).decision.allowed);
        CHECK(limiter.refund(key(i), 1).allowed);
        CHECK(limiter.charge(key(i), 0).allowed);
        limiter.reset(key(i));
    }
    CHECK(limiter.storage().evictions() == 0);
    for (std::uint64_t i = 0; i < 16; ++i) {
        CHECK(limiter.peek(key(i), 0).remaining == 100);
    }
}

TEST_CASE("a reset gives its room to the next") {
    Limiter limiter{bucket, LocalStorage{sixteen_slots}, ManualClock{}};
    for (std::uint64_t i = 0; i < 16; ++i) {
        CHECK(limiter.check(key(i), 900).allowed);
    }
    for (std::uint64_t i = 0; i < 1000; ++i) {
        limiter.reset(key(i));
        CHECK(limiter.check(key(i + 16), 900).allowed);
    }
    CHECK(limiter.storage().evictions() == 0);
}

TEST_CASE("a client limited by a slow plan is not forgotten in a flood under a fast one") {
    const ManualClock clock;
    Limiter limiter{bucket, LocalStorage{sixteen_slots}, clock};
    const auto slow = penstock::plan(TokenBucket{.capacity = 1000, .refill = per_hour(1)});
    CHECK(limiter.check("limited", slow, 1000).allowed);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        clock.advance(100ms);
        CHECK(limiter.check(key(i)).allowed);
    }
    CHECK(limiter.peek("limited", slow) == rejected(1000, 0, 1h - 1000s, 1000h - 1000s));
}

TEST_CASE("a fast plan does not bring forward when a client may be forgotten under a slow one") {
    const ManualClock clock;
    Limiter limiter{bucket, LocalStorage{sixteen_slots}, clock};
    const auto slow = penstock::plan(TokenBucket{.capacity = 1000, .refill = per_hour(1)});
    CHECK(limiter.check("limited", slow, 999).allowed);
    CHECK(limiter.check("limited", 1).allowed);
    clock.advance(2000s);
    for (std::uint64_t i = 0; i < 15; ++i) {
        CHECK(limiter.check(key(i)).allowed);
    }
    CHECK(limiter.peek("limited", slow, 0).remaining == 0);
}

// Seed

std::vector<bool> survivors(std::uint64_t seed) {
    const std::uint64_t clients = 4000;
    Limiter limiter{bucket, LocalStorage{{.max_keys = 1000, .seed = seed}}, ManualClock{}};
    for (std::uint64_t i = 0; i < clients; ++i) {
        (void)limiter.check(key(i));
    }
    std::vector<bool> remembered;
    for (std::uint64_t i = 0; i < clients; ++i) {
        remembered.push_back(limiter.peek(key(i), 0).remaining < bucket.capacity);
    }
    return remembered;
}

TEST_CASE("a fixed seed repeats who is pushed out, without one nobody can foresee it") {
    CHECK(survivors(7) == survivors(7));
    CHECK(survivors(7) != survivors(8));
    CHECK(survivors(0) != survivors(0));
}

// What a limiter stands on

TEST_CASE("a key may be looked up in advance, and used as often as need be") {
    LocalStorage::Bound<TokenBucket> bound{LocalStorage{sixteen_slots}};
    const auto plan = penstock::plan(bucket);
    const auto location = bound.locate("client");
    penstock::Decision decision;
    CHECK(bound.apply(penstock::Op::check, location, plan, 0, 10, 0us, decision) == penstock::StoreError::none);
    CHECK(decision == allowed(1000, 990, 10s));
    CHECK(bound.apply(penstock::Op::check, location, plan, 5'000'000, 10, 0us, decision) == penstock::StoreError::none);
    CHECK(decision == allowed(1000, 985, 15s));
    CHECK(bound.apply(penstock::Op::peek, "client", plan, 5'000'000, 986, 0us, decision) == penstock::StoreError::none);
    CHECK(decision == rejected(1000, 985, 1s, 15s));
    CHECK(bound.apply(penstock::Op::reset, location, plan, 5'000'000, 0, 0us, decision) == penstock::StoreError::none);
    CHECK(bound.apply(penstock::Op::check, "client", plan, 5'000'000, 0, 0us, decision) == penstock::StoreError::none);
    CHECK(decision == allowed(1000, 1000, 0s));
}

TEST_CASE("several keys pass in one step, each under a plan of its own, or none of them") {
    using Table = LocalStorage::Bound<TokenBucket>;
    Table table{LocalStorage{{.max_keys = 100}}};
    const auto small = penstock::plan(TokenBucket{.capacity = 5, .refill = per_second(1)});
    const auto large = penstock::plan(bucket);
    const std::array<penstock::PlannedCheck<TokenBucket>, 3> checks{
        {{.key = "a", .plan = &small, .cost = 2}, {.key = "b", .plan = &large}, {.key = "a", .plan = &large}}};
    std::array<penstock::Decision, 3> decisions;

    CHECK(table.apply_all(checks, 0, decisions));
    CHECK(decisions[0] == allowed(5, 3, 2s));
    CHECK(decisions[1] == allowed(1000, 999, 1s));
    CHECK(decisions[2] == allowed(1000, 997, 3s));

    CHECK(table.apply_all(checks, 500'000, decisions));
    CHECK(decisions[0] == allowed(5, 0, 4'500ms));
    CHECK(decisions[1] == allowed(1000, 998, 1'500ms));
    CHECK(decisions[2] == allowed(1000, 994, 5'500ms));

    CHECK_FALSE(table.apply_all(checks, 500'000, decisions));
    CHECK(decisions[0] == rejected(5, 0, 2'500ms, 5'500ms));
    CHECK(decisions[1].allowed);

    const std::array<penstock::PlannedCheck<TokenBucket>, 2> look{
        {{.key = "a", .plan = &large, .cost = 0}, {.key = "b", .plan = &large, .cost = 0}}};
    CHECK(table.apply_all(look, 500'000, decisions));
    CHECK(decisions[0] == allowed(1000, 994, 5'500ms));
    CHECK(decisions[1] == allowed(1000, 998, 1'500ms));
}

TEST_CASE("sixteen keys pass in one step, and none at all do too") {
    using Table = LocalStorage::Bound<FixedWindow>;
    Table table{LocalStorage{{.max_keys = 100}}};
    const auto plan = penstock::plan(window);
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < Table::most_at_once; ++i) {
        keys.push_back(key(i));
    }
    std::vector<penstock::PlannedCheck<FixedWindow>> checks;
    for (const std::string& each : keys) {
        checks.push_back({.key = each, .plan = &plan, .cost = 4});
    }
    std::vector<penstock::Decision> decisions(checks.size());
    CHECK(Table::most_at_once == 16);
    CHECK(table.apply_all(checks, 0, decisions));
    CHECK(decisions.back() == allowed(5, 1, 1h));
    CHECK_FALSE(table.apply_all(checks, 0, decisions));
    CHECK(decisions.front() == rejected(5, 1, 1h, 1h));
    CHECK(table.apply_all({}, 0, decisions));
}

TEST_CASE("clients of several limits keep all of their states") {
    Limiter limiter{AllOf{bucket, window, SlidingWindow{.limit = 7, .window = 1h}, support::Quota{.units = 3}},
                    LocalStorage{{.max_keys = 100}},
                    ManualClock{}};
    for (std::uint64_t i = 0; i < 100; ++i) {
        CHECK(limiter.check(key(i), 2) == allowed(3, 1, penstock::never));
    }
    for (std::uint64_t i = 0; i < 100; ++i) {
        CHECK(limiter.check(key(i), 1) == allowed(3, 0, penstock::never));
        CHECK(limiter.check(key(i), 6) == rejected(5, 0, penstock::never, 1h));
    }
}

/// A quota that can be given back, which does not move the stamp, and that nothing but this makes fresh again.
struct Deposit {
    std::uint64_t units;

    struct State {
        std::uint64_t used;
        penstock::Micros stamp;
    };

    static penstock::Decision decide(const State& state, const penstock::Plan<Deposit>& plan, bool admitted) noexcept {
        return {.allowed = admitted,
                .limit = plan.units,
                .remaining = plan.units - state.used,
                .retry_after = admitted ? 0us : penstock::never,
                .reset_after = state.used == 0 ? 0us : penstock::never};
    }

    static penstock::Decision step(State& state,
                                   const penstock::Plan<Deposit>& plan,
                                   penstock::Micros now,
                                   std::uint64_t cost,
                                   penstock::Micros) noexcept {
        const bool fits = cost <= plan.units - state.used;
        if (fits && cost > 0) {
            state = {.used = state.used + cost, .stamp = now > state.stamp ? now : state.stamp};
        }
        return decide(state, plan, fits);
    }

    static penstock::Decision refund(State& state,
                                     const penstock::Plan<Deposit>& plan,
                                     penstock::Micros,
                                     std::uint64_t cost,
                                     penstock::Micros) noexcept {
        state.used -= cost < state.used ? cost : state.used;
        return decide(state, plan, true);
    }

    static penstock::Micros fresh_at(const State& state) noexcept { return state.used == 0 ? 0 : ~penstock::Micros{0}; }
};

TEST_CASE("a state that is never fresh again may keep an old stamp") {
    const ManualClock clock;
    const auto limiter = std::make_shared<Limiter<Deposit, LocalStorage, ManualClock>>(
        Deposit{.units = 5}, LocalStorage{sixteen_slots}, clock);
    CHECK(limiter->check("client", 3) == allowed(5, 2, penstock::never));
    clock.set(10s);
    CHECK(limiter->refund("client", 1) == allowed(5, 3, penstock::never));
    REQUIRE(support::ends([limiter] { (void)limiter->check("client", 0); }));
    CHECK(limiter->check("client", 3) == allowed(5, 0, penstock::never));
}

}  // namespace
