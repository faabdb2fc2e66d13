// SPDX-License-Identifier: MIT
// When too much is under way, what matters least is not sent; and how a check comes by its priority.
#include <penstock/guard/shed.hpp>

#include "../../support/decisions.hpp"
#include "../../support/flaky_storage.hpp"
#include "../../support/print.hpp"
#include "../../support/threads.hpp"

#include <penstock/guard/denied_cache.hpp>
#include <penstock/guard/guarded.hpp>
#include <penstock/guard/split.hpp>
#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Allow;
using penstock::Check;
using penstock::Decision;
using penstock::DeniedCache;
using penstock::Deny;
using penstock::FixedWindow;
using penstock::Guarded;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::Op;
using penstock::Priority;
using penstock::Shed;
using penstock::Source;
using penstock::Split;
using penstock::StoreError;
using support::allowed;
using support::FlakyStorage;
using support::rejected;

constexpr FixedWindow window{.limit = 100, .window = 1h};
constexpr Decision let_pass{.allowed = true, .source = Source::shed};
constexpr Decision turned_away{.allowed = false, .retry_after = 1s, .source = Source::shed};

constexpr Check low{.key = "a", .cost = 1, .priority = Priority::low};
constexpr Check normal{.key = "a", .cost = 1, .priority = Priority::normal};
constexpr Check high{.key = "a", .cost = 1, .priority = Priority::high};

/// What is not answered would keep its store for ever.
void answer_all(const FlakyStorage& store) {
    while (store.answer()) {
    }
}

/// A limiter over a store that answers handlers when the test says so.
struct Fixture {
    explicit Fixture(const penstock::ShedOptions& options) : shed(store, options), limiter(window, shed, clock) {}
    ~Fixture() { answer_all(store); }

    /// Starts so many calls that stay under way.
    void start(int calls) {
        for (int i = 0; i < calls; ++i) {
            limiter.async_check("other", 1, [this](const Decision&) { ++told; });
        }
    }

    /// What a handler is told at once.
    std::optional<Decision> told_at_once(const Check& check) {
        const auto told_of = std::make_shared<std::optional<Decision>>();
        limiter.async_check(check, [told_of](const Decision& decision) { *told_of = decision; });
        return *told_of;
    }

    ManualClock clock;
    FlakyStorage store;
    Shed<FlakyStorage> shed;
    Limiter<FixedWindow, Shed<FlakyStorage>, ManualClock> limiter;
    int told = 0;
};

TEST_CASE("while no more calls are under way than may be, all are sent") {
    Fixture fixture({.in_flight = 3});
    fixture.start(3);
    CHECK(fixture.shed.stats().in_flight == 3);
    CHECK(fixture.limiter.check(low) == allowed(100, 99, 1h));
    CHECK(fixture.limiter.check("a") == allowed(100, 98, 1h));
    CHECK_FALSE(fixture.told_at_once(low).has_value());
    CHECK(fixture.shed.stats().in_flight == 4);
    CHECK(fixture.shed.stats().shed == 0);
}

TEST_CASE("while more are, those of low priority are not, and nobody else notices") {
    Fixture fixture({.in_flight = 3});
    fixture.start(4);
    CHECK(fixture.limiter.check(low) == let_pass);
    CHECK(fixture.told_at_once(low) == let_pass);
    CHECK(fixture.store.asked() == 0);
    CHECK(fixture.limiter.check(normal) == allowed(100, 99, 1h));
    CHECK(fixture.limiter.check(high) == allowed(100, 98, 1h));
    CHECK(fixture.limiter.check("a") == allowed(100, 97, 1h));
    CHECK(fixture.limiter.peek("a") == allowed(100, 96, 1h));
    CHECK_FALSE(fixture.told_at_once(high).has_value());
    CHECK(fixture.shed.stats().shed == 2);
    CHECK(fixture.limiter.storage().stats().in_flight == 5);

    CHECK(fixture.store.answer());
    CHECK(fixture.limiter.check(low) == let_pass);
    CHECK(fixture.store.answer());
    CHECK(fixture.limiter.check(low) == allowed(100, 96, 1h));
    answer_all(fixture.store);
    CHECK(fixture.told == 4);
    CHECK(fixture.shed.stats().in_flight == 0);
}

TEST_CASE("what is shed may be turned away, to come back in a second") {
    Fixture fixture({.in_flight = 0, .on_shed = Deny{}});
    CHECK(fixture.limiter.check(low) == allowed(100, 99, 1h));
    fixture.start(1);
    CHECK(fixture.limiter.check(low) == turned_away);
    CHECK(fixture.told_at_once(low) == turned_away);
    CHECK(fixture.limiter.check(low, penstock::plan(FixedWindow{.limit = 5, .window = 1h})) == turned_away);
}

TEST_CASE("a batch is shed of as it begins, its own checks do not count") {
    Fixture fixture({.in_flight = 2});
    std::vector<Check> checks;
    for (int i = 0; i < 150; ++i) {
        checks.push_back({.key = "a", .cost = 1, .priority = static_cast<Priority>(i % 3)});
    }
    std::vector<Decision> decisions(checks.size());
    fixture.limiter.check(checks, decisions);
    for (std::size_t i = 0; i < checks.size(); ++i) {
        CHECK(decisions[i].allowed == (i < 100));
        CHECK(decisions[i].source == Source::store);
    }
    fixture.start(3);
    fixture.limiter.reset("a");
    fixture.limiter.check(checks, decisions);
    for (std::size_t i = 0; i < checks.size(); ++i) {
        const std::uint64_t sent_before = i - i / 3 - 1;
        CHECK(decisions[i] == (i % 3 == 0 ? let_pass : allowed(100, 99 - sent_before, 1h)));
    }
    CHECK(fixture.shed.stats().shed == 50);
    CHECK(fixture.shed.stats().in_flight == 3);
}

TEST_CASE("what fails is no longer under way") {
    Fixture fixture({.in_flight = 3});
    fixture.store.fail(StoreError::timeout);
    fixture.start(4);
    CHECK(fixture.limiter.check(normal).source == Source::fail_open);
    const std::array<Check, 2> checks{normal, low};
    std::array<Decision, 2> decisions;
    fixture.limiter.check(checks, decisions);
    CHECK(decisions[0].source == Source::fail_open);
    CHECK(decisions[1] == let_pass);
    CHECK(fixture.shed.stats().in_flight == 4);
    answer_all(fixture.store);
    CHECK(fixture.told == 4);
    CHECK(fixture.shed.stats().in_flight == 0);
}

TEST_CASE("limiters of one guard and of its copies count together, those of another do not") {
    const FlakyStorage store;
    const Shed shed{store, {.in_flight = 1}};
    const Shed<FlakyStorage> copy = shed;
    const Shed other{store, {.in_flight = 1}};
    Limiter first{window, shed, ManualClock{}};
    Limiter second{window, copy, ManualClock{}};
    Limiter third{window, other, ManualClock{}};
    first.async_check("a", 1, [](const Decision&) {});
    second.async_check("a", 1, [](const Decision&) {});
    CHECK(first.check(low) == let_pass);
    CHECK(second.check(low) == let_pass);
    CHECK(third.check(low).source == Source::store);
    CHECK(copy.stats().shed == 2);
    answer_all(store);
}

TEST_CASE("a handler may outlive its limiter") {
    const FlakyStorage store;
    const Shed shed{store};
    bool told = false;
    {
        Limiter limiter{window, shed, ManualClock{}};
        limiter.async_check(low, [&](const Decision& decision) { told = decision.allowed; });
    }
    CHECK(shed.stats().in_flight == 1);
    CHECK(store.answer());
    CHECK(told);
    CHECK(shed.stats().in_flight == 0);
}

TEST_CASE("priorities find their way through other guards") {
    const FlakyStorage store;
    const Shed shed{store, {.in_flight = 0}};
    const ManualClock clock;
    const auto is_hot = [](std::string_view) { return false; };
    Limiter guarded{window, Guarded{shed}, clock};
    Limiter cached{window, DeniedCache{shed}, clock};
    Limiter split{window, Split{shed, {.is_hot = is_hot}}, clock};
    Limiter twice{window, penstock::Shed<Shed<FlakyStorage>>{shed, {.in_flight = 10}}, clock};
    const auto all_shed = [&](auto& limiter) {
        bool told = false;
        limiter.async_check(low, [&](const Decision& decision) { told = decision == let_pass; });
        return told && limiter.check(low) == let_pass && limiter.check(normal).source == Source::store;
    };
    guarded.async_check("other", 1, [](const Decision&) {});
    CHECK(all_shed(guarded));
    CHECK(all_shed(cached));
    CHECK(all_shed(split));
    CHECK(all_shed(twice));
    CHECK(shed.stats().shed == 8);
    answer_all(store);
}

TEST_CASE("without a guard that sheds a priority changes nothing") {
    const ManualClock clock;
    Limiter limiter{window, LocalStorage{}, clock};
    CHECK(limiter.check(low) == allowed(100, 99, 1h));
    CHECK(limiter.check(Check{.key = "a", .cost = 9}) == allowed(100, 90, 1h));
    CHECK(limiter.check(high, penstock::plan(FixedWindow{.limit = 10, .window = 1h})) == rejected(10, 0, 1h, 1h));
    const FlakyStorage store;
    Limiter remote{window, store, clock};
    bool told = false;
    remote.async_check(low, penstock::plan(FixedWindow{.limit = 10, .window = 1h}), [&](const Decision& decision) {
        told = decision == allowed(10, 9, 1h);
    });
    CHECK_FALSE(told);
    CHECK(store.answer());
    CHECK(told);
}

TEST_CASE("in this process it sheds as well, and counts right from any thread") {
    const Shed shed{LocalStorage{}, {.in_flight = 0, .on_shed = Deny{}}};
    Limiter limiter{FixedWindow{.limit = 1'000'000, .window = 1h}, shed, ManualClock{}};
    std::atomic<std::uint64_t> turned{0};
    threads::together(4, [&](std::size_t i) {
        for (int round = 0; round < 10'000; ++round) {
            const Decision decision = limiter.check(i % 2 == 0 ? low : normal);
            turned += decision.allowed ? 0 : 1;
        }
    });
    CHECK(shed.stats().in_flight == 0);
    CHECK(shed.stats().shed == turned);
    CHECK(limiter.peek("a", 0).remaining == 1'000'000 - 40'000 + turned);
}

TEST_CASE("nodes and the meaning of failures are those of the storage beneath") {
    const Shed<FlakyStorage>::Bound<FixedWindow> bound{Shed{FlakyStorage{3}}};
    CHECK(bound.node_of("b", 0) == 1);
    CHECK(bound.failed(StoreError::timeout).source == Source::fail_open);
    const Shed<LocalStorage>::Bound<FixedWindow> local{Shed{LocalStorage{}}};
    CHECK(local.node_of("b", 0) == 0);
}

}  // namespace
