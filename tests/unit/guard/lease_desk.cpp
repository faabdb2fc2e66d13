// SPDX-License-Identifier: MIT
// Leases over a store that can be asked without waiting: renewals in the background, and answers that come late.
#include <penstock/guard/lease_desk.hpp>

#include "../../support/expect.hpp"
#include "../../support/shared_storage.hpp"
#include "../../support/threads.hpp"

#include <penstock/guard/guarded.hpp>
#include <penstock/guard/leased.hpp>
#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using expect::allowed_of;
using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Leased;
using penstock::LeasedOptions;
using penstock::LeasedStats;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::Op;
using penstock::Source;
using penstock::StoreError;
using support::Asking;

using Store = support::SharedStorage<Asking::either>;
using Gateway = Limiter<FixedWindow, Leased<Store>, ManualClock>;

constexpr FixedWindow window{.limit = 1000, .window = 1h};
constexpr LeasedOptions of_eight{.size = 8, .return_timeout = 1ms};

struct Fixture {
    explicit Fixture(const FixedWindow& algorithm = window, const LeasedOptions& options = of_eight)
        : plain(algorithm, store, clock) {
        limiter.emplace(algorithm, Leased{store, options}, clock);
    }

    std::uint64_t use(std::uint64_t checks) { return allowed_of(checks, *limiter, "key"); }

    [[nodiscard]] std::uint64_t remaining() { return plain.peek("key", 0).remaining; }
    [[nodiscard]] LeasedStats stats() const { return limiter->storage().stats(); }

    ManualClock clock;
    Store store;
    Limiter<FixedWindow, Store, ManualClock> plain;
    std::optional<Gateway> limiter;
};

TEST_CASE("a lease is renewed before it runs out, and nobody waits for it") {
    Fixture gateway;
    CHECK(gateway.use(3) == 3);  // 1, and 2 of which the last is used
    CHECK(gateway.store.pending() == 1);
    CHECK(gateway.remaining() == 1000 - 3);
    gateway.store.answer_all();
    CHECK(gateway.remaining() == 1000 - 3 - 4);
    const std::uint64_t asked = gateway.store.calls(Op::check);
    for (int i = 0; i < 100; ++i) {
        CHECK(gateway.limiter->check("key").source == Source::lease);
        gateway.store.answer_all();
    }
    CHECK(gateway.store.calls(Op::check) - asked <= 100 / 6 + 1);
}

TEST_CASE("one renewal is under way at a time, and meanwhile callers ask for their own cost alone") {
    Fixture gateway;
    CHECK(gateway.use(13) == 13);
    CHECK(gateway.store.pending() == 1);
    CHECK(gateway.remaining() == 1000 - 13);
    gateway.store.answer_all();
    CHECK(gateway.remaining() == 1000 - 17);
    CHECK(gateway.limiter->check("key").source == Source::lease);
}

TEST_CASE("what is held never exceeds the size") {
    Fixture gateway;
    for (std::uint64_t used = 1; used < 500; ++used) {
        CHECK(gateway.use(1) == 1);
        if (used % 3 == 0) {
            gateway.store.answer_all();
        }
        CHECK(1000 - gateway.remaining() - used <= 8);
    }
}

TEST_CASE("after a renewal that failed only a caller who finds nothing left asks again") {
    Fixture gateway;
    CHECK(gateway.use(3) == 3);
    gateway.store.answer_all();
    gateway.store.fail(StoreError::timeout);
    CHECK(gateway.use(3) == 3);  // 1 of 4 is left
    gateway.store.answer_all();
    const std::uint64_t asked = gateway.store.calls(Op::check);
    CHECK(gateway.use(1) == 1);
    CHECK(gateway.store.pending() == 0);
    CHECK(gateway.limiter->check("key").source == Source::fail_closed);
    CHECK(gateway.store.calls(Op::check) == asked + 1);
    gateway.store.fail(StoreError::none);
    CHECK(gateway.limiter->check("key").source == Source::store);
}

TEST_CASE("a handler is called at once if the lease decides, otherwise when the store has answered") {
    Fixture gateway;
    std::vector<Decision> told;
    const auto check = [&](std::uint64_t cost) {
        gateway.limiter->async_check("key", cost, [&](const Decision& decision) { told.push_back(decision); });
    };
    check(1);
    CHECK(told.empty());
    gateway.store.answer_all();
    check(1);
    gateway.store.answer_all();
    REQUIRE(told.size() == 2);
    CHECK(told[1].source == Source::store);
    CHECK(told[1].remaining == 998);
    check(1);
    REQUIRE(told.size() == 3);
    CHECK(told[2].source == Source::lease);
    gateway.store.fail(StoreError::timeout);
    gateway.store.answer_all();  // the renewal
    check(1);
    gateway.store.answer_all();
    REQUIRE(told.size() == 4);
    CHECK(told[3].source == Source::fail_closed);
}

TEST_CASE("a handler whose check asked for more than the store has hears of what it has") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 1h});
    std::optional<Decision> told;
    const auto check = [&] {
        gateway.limiter->async_check("key", 1, [&](const Decision& decision) { told = decision; });
        gateway.store.answer_all();
        return *told;
    };
    CHECK(check().allowed);
    CHECK(gateway.plain.check("key", 158).allowed);
    CHECK(check() ==
          Decision{.allowed = true, .limit = 160, .remaining = 0, .reset_after = 1h, .source = Source::store});
    CHECK(gateway.store.calls(Op::check) == 4);
    CHECK(check().retry_after == 1h);
    CHECK(check().source == Source::lease);
}

TEST_CASE("a coroutine goes on at once if the lease decides") {
    struct Task {
        struct promise_type {
            Task get_return_object() { return {}; }
            std::suspend_never initial_suspend() { return {}; }
            std::suspend_never final_suspend() noexcept { return {}; }
            void return_void() {}
            void unhandled_exception() {}
        };
    };
    Fixture gateway;
    CHECK(gateway.use(2) == 2);
    std::vector<Source> sources;
    const auto run = [&]() -> Task {
        sources.push_back((co_await gateway.limiter->async_check("key")).source);
        sources.push_back((co_await gateway.limiter->async_check("other")).source);
    };
    run();
    CHECK(sources == std::vector<Source>{Source::lease});
    gateway.store.answer_all();
    CHECK(sources == std::vector<Source>{Source::lease, Source::store});
}

TEST_CASE("other operations without waiting see what is held, too") {
    Fixture gateway;
    CHECK(gateway.use(2) == 2);
    Leased<Store>::Bound<FixedWindow> bound(Leased{gateway.store, of_eight});
    std::vector<Decision> told;
    const auto call = [&](Op op, std::uint64_t cost) {
        bound.async_apply(op, "key", penstock::plan(window), 0, cost, [&](StoreError, const Decision& decision) {
            told.push_back(decision);
        });
        gateway.store.answer_all();
    };
    for (int i = 0; i < 3; ++i) {
        call(Op::check, 1);
    }
    call(Op::peek, 0);
    CHECK(told.back().remaining == 1000 - 3 - 3);
    CHECK(gateway.remaining() < told.back().remaining);
    call(Op::reset, 0);
    CHECK(bound.stats().leases == 0);
    CHECK(gateway.remaining() == 1000);
}

TEST_CASE("units that come when their lease is gone are given back") {
    Fixture gateway;
    CHECK(gateway.use(3) == 3);
    const auto other = penstock::plan(FixedWindow{.limit = 2000, .window = 1h});
    CHECK(gateway.limiter->check("key", other).allowed);
    gateway.store.answer_all();
    CHECK(gateway.remaining() == 1000 - 4);
    CHECK(gateway.stats().returned == 4);
}

TEST_CASE("units of several windows that come when their lease is gone are dropped") {
    const ManualClock clock;
    const Store store;
    const AllOf both{window, FixedWindow{.limit = 2000, .window = 2h}};
    Limiter limiter{both, Leased{store, of_eight}, clock};
    CHECK(allowed_of(3, limiter, "key") == 3);
    limiter.reset("key");
    store.answer_all();
    CHECK(limiter.storage().stats().dropped == 4);
    CHECK(store.calls(Op::refund) == 0);
}

TEST_CASE("at its end a limiter waits for what is under way, and gives all back") {
    Fixture gateway;
    CHECK(gateway.use(2) == 2);
    gateway.store.answer_at_once();
    gateway.limiter.reset();
    CHECK(gateway.remaining() == 1000 - 2);
    CHECK(gateway.store.calls(Op::refund) == 1);
}

TEST_CASE("answers that come after the limiter has gone hurt nobody, and its handlers are told") {
    Fixture gateway;
    CHECK(gateway.use(3) == 3);
    int told = 0;
    gateway.limiter->async_check("other", 1, [&](const Decision&) { ++told; });
    gateway.limiter.reset();
    CHECK(told == 0);
    gateway.store.answer_all();
    CHECK(told == 1);
    CHECK(gateway.remaining() == 1000 - 3 - 4);  // nobody can give back what the renewal took
}

TEST_CASE("a handler may destroy the limiter, even if the store answers at once") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 1h});
    gateway.store.answer_at_once();
    std::optional<Decision> told;
    const auto check_and_destroy = [&] {
        gateway.limiter->async_check("key", 1, [&](const Decision& decision) {
            told = decision;
            gateway.limiter.reset();
        });
    };
    SUBCASE("its first answer") {
        check_and_destroy();
        CHECK(told->allowed);
    }
    SUBCASE("its second, since it had less than was asked for") {
        CHECK(gateway.use(1) == 1);
        CHECK(gateway.plain.check("key", 159).allowed);
        check_and_destroy();
        CHECK(told->retry_after == 1h);
    }
    CHECK_FALSE(gateway.limiter.has_value());
}

TEST_CASE("a check whose limiter has gone is told what the store said, and asks for nothing more") {
    Fixture gateway(FixedWindow{.limit = 160, .window = 1h});
    CHECK(gateway.use(1) == 1);
    CHECK(gateway.plain.check("key", 158).allowed);
    std::optional<Decision> told;
    gateway.limiter->async_check("key", 1, [&](const Decision& decision) { told = decision; });
    gateway.limiter.reset();
    gateway.store.answer_all();
    REQUIRE(told.has_value());
    CHECK_FALSE(told->allowed);
}

TEST_CASE("at its end a limiter gives up on a store that fails or does not answer") {
    Fixture gateway;
    for (int i = 0; i < 1000; ++i) {
        CHECK(allowed_of(2, *gateway.limiter, "key " + std::to_string(i)) == 2);
        CHECK(gateway.limiter->check("key " + std::to_string(i)).allowed);
        gateway.store.answer_all();
    }
    SUBCASE("it fails") {
        gateway.store.answer_at_once();
        gateway.store.fail(StoreError::timeout);
        gateway.limiter.reset();
        CHECK(gateway.store.calls(Op::refund) == 1);
    }
    SUBCASE("it does not answer") {
        gateway.limiter.reset();
        CHECK(gateway.store.calls(Op::refund) == 0);
        CHECK(gateway.store.pending() <= 258);
        gateway.store.answer_all();
    }
}

TEST_CASE("a handler of a guard that answers at once finds no lock held") {
    const ManualClock clock;
    const Store store;
    Limiter limiter{
        window, Leased{penstock::Guarded{store, {.breaker = {.failures = 1, .percent = 0}}}, of_eight}, clock};
    CHECK(allowed_of(2, limiter, "key") == 2);
    store.fail(StoreError::timeout);
    CHECK(limiter.check("other").source == Source::fail_open);
    CHECK(limiter.check("key").source == Source::lease);  // and its renewal meets the open breaker
    CHECK(store.pending() == 0);
}

TEST_CASE("a door that closes waits for those inside, and lets nobody in any more") {
    penstock::detail::Door door;
    std::atomic<bool> left{false};
    REQUIRE(door.enter());
    std::thread inside([&] {
        while (door.enter()) {
            door.leave();
        }
        left = true;
        door.leave();
    });
    door.close();
    CHECK(left);
    CHECK_FALSE(door.enter());
    inside.join();
}

TEST_CASE("threads that use one client's lease use each unit once") {
    const ManualClock clock;
    const support::SharedStorage<> store;
    constexpr std::size_t callers = 4;
    const FixedWindow large{.limit = 100'000, .window = 1h};
    std::uint64_t allowed = 0;
    LeasedStats stats;
    {
        Limiter limiter{large, Leased{store, {.size = 50}}, clock};
        for (const std::uint64_t each :
             threads::results_of(callers, [&](std::size_t) { return allowed_of(30'000, limiter, "key"); })) {
            allowed += each;
        }
        stats = limiter.storage().stats();
    }
    CHECK(allowed <= 100'000);
    CHECK(allowed >= 100'000 - 50);
    Limiter plain{large, store, clock};
    CHECK(plain.peek("key", 0).remaining == 100'000 - allowed);
}

}  // namespace
