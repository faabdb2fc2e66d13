// SPDX-License-Identifier: MIT
#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include "../support/archetypes.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Key;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::Micros;
using penstock::Op;
using penstock::Plan;
using penstock::Rate;
using penstock::Reservation;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::TokenBucket;
using std::chrono::microseconds;

/// Stands for an object where only the call is looked at: making one might throw.
template <class T>
T& some() noexcept;

template <class Storage, class Clock>
constexpr bool limiter_throws_only_when_configured() {
    using AnyLimiter = Limiter<TokenBucket, Storage, Clock>;
    using Name = const std::string_view;
    using Tier = const Plan<TokenBucket>;
    using Checks = const std::span<const Check>;
    using Decisions = const std::span<Decision>;
    using Wait = const microseconds;

    static_assert(noexcept(some<AnyLimiter>().check(some<Name>())));
    static_assert(noexcept(some<AnyLimiter>().check(some<Name>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().check(some<Name>(), some<Tier>())));
    static_assert(noexcept(some<AnyLimiter>().check(some<Name>(), some<Tier>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().check(some<Checks>(), some<Decisions>())));
    static_assert(noexcept(some<AnyLimiter>().check(some<Tier>(), some<Checks>(), some<Decisions>())));
    static_assert(noexcept(some<AnyLimiter>().peek(some<Name>())));
    static_assert(noexcept(some<AnyLimiter>().peek(some<Name>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().peek(some<Name>(), some<Tier>())));
    static_assert(noexcept(some<AnyLimiter>().peek(some<Name>(), some<Tier>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().refund(some<Name>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().refund(some<Name>(), some<Tier>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().charge(some<Name>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().charge(some<Name>(), some<Tier>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().reserve(some<Name>(), some<Wait>())));
    static_assert(noexcept(some<AnyLimiter>().reserve(some<Name>(), some<Wait>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().reserve(some<Name>(), some<Tier>(), some<Wait>())));
    static_assert(noexcept(some<AnyLimiter>().reserve(some<Name>(), some<Tier>(), some<Wait>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().wait_for(some<Name>(), some<Wait>())));
    static_assert(noexcept(some<AnyLimiter>().wait_for(some<Name>(), some<Wait>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().wait_for(some<Name>(), some<Tier>(), some<Wait>())));
    static_assert(noexcept(some<AnyLimiter>().wait_for(some<Name>(), some<Tier>(), some<Wait>(), 1)));
    static_assert(noexcept(some<AnyLimiter>().reset(some<Name>())));
    static_assert(noexcept(some<const AnyLimiter>().algorithm()));
    static_assert(noexcept(some<const AnyLimiter>().storage()));
    static_assert(std::is_nothrow_destructible_v<AnyLimiter>);

    static_assert(!noexcept(some<AnyLimiter>().configure(some<const TokenBucket>())));
    static_assert(!std::is_nothrow_constructible_v<AnyLimiter, TokenBucket, Storage, Clock>);
    return true;
}

template <class Algorithm>
constexpr bool steps_throw_nothing() {
    using State = typename Algorithm::State;
    using Tier = const Plan<Algorithm>;
    static_assert(noexcept(Algorithm::step(some<State>(), some<Tier>(), Micros{}, 1, Micros{})));
    static_assert(noexcept(Algorithm::refund(some<State>(), some<Tier>(), Micros{}, 1, Micros{})));
    static_assert(noexcept(Algorithm::charge(some<State>(), some<Tier>(), Micros{}, 1, Micros{})));
    static_assert(noexcept(Algorithm::fresh_at(some<const State>())));
    static_assert(noexcept(some<Tier>().algorithm()));
    if constexpr (penstock::Reservable<Algorithm>) {
        static_assert(noexcept(
            Algorithm::reserve(some<State>(), some<Tier>(), Micros{}, 1, Micros{}, some<const microseconds>())));
    }
    static_assert(!noexcept(penstock::plan(some<const Algorithm>())));
    return true;
}

template <class Clock>
constexpr bool clock_throws_nothing =
    noexcept(some<const Clock>().now()) &&
    std::is_nothrow_copy_constructible_v<Clock>&& std::is_nothrow_destructible_v<Clock>;

template <class T>
constexpr bool comparison_throws_nothing = noexcept(some<const T>() == some<const T>());

TEST_CASE("only configuration throws: every call that decides is noexcept") {
    CHECK(limiter_throws_only_when_configured<LocalStorage, penstock::SteadyClock>());
    CHECK(limiter_throws_only_when_configured<support::DoorStorage, penstock::ManualClock>());

    CHECK(steps_throw_nothing<TokenBucket>());
    CHECK(steps_throw_nothing<SlidingWindow>());
    CHECK(steps_throw_nothing<FixedWindow>());
    CHECK(steps_throw_nothing<AllOf<TokenBucket, TokenBucket>>());
    CHECK(steps_throw_nothing<AllOf<TokenBucket, SlidingWindow, FixedWindow>>());

    CHECK(clock_throws_nothing<penstock::SteadyClock>);
    CHECK(clock_throws_nothing<penstock::CoarseClock>);
    CHECK(clock_throws_nothing<penstock::SystemClock>);
    CHECK(clock_throws_nothing<penstock::CachedClock>);
    CHECK(clock_throws_nothing<penstock::ManualClock>);
    CHECK(noexcept(some<const penstock::CachedClock>().tick()));
    CHECK(noexcept(some<const penstock::CachedClock>().set(some<microseconds>())));
    CHECK(noexcept(some<const penstock::ManualClock>().set(some<microseconds>())));
    CHECK(noexcept(some<const penstock::ManualClock>().advance(some<microseconds>())));

    using Bound = LocalStorage::Bound<TokenBucket>;
    using Location = decltype(some<const Bound>().locate(some<std::string_view>()));
    CHECK(noexcept(some<const Bound>().locate(some<std::string_view>())));
    CHECK(noexcept(some<Bound>().apply(Op::check,
                                       some<std::string_view>(),
                                       some<Plan<TokenBucket>>(),
                                       Micros{},
                                       1,
                                       some<microseconds>(),
                                       some<Decision>())));
    CHECK(noexcept(some<Bound>().apply(
        Op::check, some<Location>(), some<Plan<TokenBucket>>(), Micros{}, 1, some<microseconds>(), some<Decision>())));
    CHECK(noexcept(some<Bound>().apply_all(
        some<std::span<const penstock::PlannedCheck<TokenBucket>>>(), Micros{}, some<std::span<Decision>>())));
    CHECK(noexcept(some<const Bound>().evictions()));
    CHECK(noexcept(some<const Bound>().slots()));
    CHECK(noexcept(some<const Bound>().bytes()));
    CHECK_FALSE(std::is_nothrow_constructible_v<Bound, const LocalStorage&>);

    CHECK(noexcept(static_cast<bool>(some<Decision>())));
    CHECK(noexcept(static_cast<bool>(some<Reservation>())));
    CHECK(noexcept(to_string(Source::store)));
    CHECK(comparison_throws_nothing<Decision>);
    CHECK(comparison_throws_nothing<Reservation>);
    CHECK(comparison_throws_nothing<Rate>);
    CHECK(comparison_throws_nothing<TokenBucket>);
    CHECK(comparison_throws_nothing<SlidingWindow>);
    CHECK(comparison_throws_nothing<FixedWindow>);
    CHECK(comparison_throws_nothing<AllOf<TokenBucket, FixedWindow>>);
    CHECK(comparison_throws_nothing<Key>);

    CHECK(noexcept(penstock::per(1, some<microseconds>())));
    CHECK(noexcept(penstock::per_second(1)));
    CHECK(noexcept(penstock::per_minute(1)));
    CHECK(noexcept(penstock::per_hour(1)));
    CHECK(noexcept(penstock::per_day(1)));
    CHECK(noexcept(penstock::hash_bytes(some<std::string_view>(), 0)));
    CHECK(noexcept(penstock::stagger_hash(some<std::string_view>())));
    CHECK(noexcept(some<const Key>().view()));
    CHECK(noexcept(static_cast<std::string_view>(some<const Key>())));
    CHECK(noexcept(penstock::on_configuration_error(nullptr)));
}

template <class Algorithm, std::size_t Bytes>
constexpr bool state_is =
    sizeof(typename Algorithm::State) == Bytes&& std::is_trivially_copyable_v<typename Algorithm::State>&& std::
                                             is_nothrow_default_constructible_v<typename Algorithm::State>;

template <class Algorithm, std::size_t Bytes>
constexpr bool plan_is_at_most = sizeof(Plan<Algorithm>) <= Bytes&& std::is_trivially_copyable_v<Plan<Algorithm>>;

template <class T, std::size_t Bytes>
constexpr bool plain =
    sizeof(T) == Bytes&& std::is_trivially_copyable_v<T>&& std::is_standard_layout_v<T>&& std::is_aggregate_v<T>;

TEST_CASE("states, plans and answers have the layout that memory and speed are reckoned with") {
    CHECK(state_is<TokenBucket, 24>);
    CHECK(state_is<SlidingWindow, 24>);
    CHECK(state_is<FixedWindow, 24>);
    CHECK(state_is<AllOf<TokenBucket>, 24>);
    CHECK(state_is<AllOf<TokenBucket, FixedWindow>, 48>);
    CHECK(state_is<AllOf<TokenBucket, FixedWindow, SlidingWindow, FixedWindow, TokenBucket>, 120>);
    CHECK(penstock::largest_state == 120);

    CHECK(plan_is_at_most<TokenBucket, 56>);
    CHECK(plan_is_at_most<SlidingWindow, 32>);
    CHECK(plan_is_at_most<FixedWindow, 40>);
    CHECK(plan_is_at_most<AllOf<TokenBucket, FixedWindow>, 96>);

    CHECK(plain<TokenBucket, 24>);
    CHECK(plain<SlidingWindow, 24>);
    CHECK(plain<FixedWindow, 32>);
    CHECK(plain<Rate, 16>);
    CHECK(plain<Decision, 48>);
    CHECK(plain<Reservation, 56>);
    CHECK(plain<Check, 32>);
    CHECK(plain<penstock::PlannedCheck<TokenBucket>, 32>);
    CHECK(plain<LocalStorage::Options, 32>);
    CHECK(std::is_trivially_copyable_v<AllOf<TokenBucket, FixedWindow>>);
    CHECK(std::is_same_v<Micros, std::uint64_t>);
    CHECK(sizeof(Source) == 1);
    CHECK(sizeof(penstock::Priority) == 1);
    CHECK(sizeof(penstock::Align) == 1);
}

// Compiled with all warnings as errors, this tells of a member without an initializer.
TEST_CASE("of any struct of options a single member may be given") {
    CHECK(TokenBucket{.capacity = 1}.refill == Rate{});
    CHECK(TokenBucket{.refill = penstock::per_second(1)}.capacity == 0);
    CHECK(SlidingWindow{.limit = 1}.window == 0us);
    CHECK(SlidingWindow{.window = 1s}.limit == 0);
    CHECK(SlidingWindow{.align = penstock::Align::staggered}.limit == 0);
    CHECK(FixedWindow{.limit = 1}.window == 0us);
    CHECK(FixedWindow{.window = 1s}.limit == 0);
    CHECK(FixedWindow{.align = penstock::Align::staggered}.limit == 0);
    CHECK(FixedWindow{.offset = 1s}.limit == 0);
    CHECK(Rate{.count = 1}.period == 0us);
    CHECK(Rate{.period = 1s}.count == 0);
    CHECK(LocalStorage::Options{.max_keys = 1}.max_bytes == 0);
    CHECK(LocalStorage::Options{.max_bytes = 1}.max_keys == 1'000'000);
    CHECK(LocalStorage::Options{.prefault = true}.max_keys == 1'000'000);
    CHECK(LocalStorage::Options{.seed = 1}.max_keys == 1'000'000);
    CHECK_FALSE(LocalStorage::Options{.seed = 1}.prefault);
    CHECK(Check{.key = "a"}.cost == 1);
    CHECK(Check{.cost = 2}.key.empty());
    CHECK(penstock::Reservation{.wait = std::chrono::seconds{1}}.wait == std::chrono::seconds{1});
    CHECK(penstock::PlannedCheck<TokenBucket>{.key = "a"}.plan == nullptr);
    CHECK(Decision{.allowed = true}.source == Source::store);
    CHECK(Decision{.limit = 1}.remaining == 0);
    CHECK(Decision{.remaining = 1}.limit == 0);
    CHECK(Decision{.retry_after = 1s}.reset_after == 0us);
    CHECK(Decision{.reset_after = 1s}.retry_after == 0us);
    CHECK_FALSE(Decision{.source = Source::shed}.allowed);
    CHECK(Reservation{.decision = {.allowed = true}}.wait == 0us);
}

TEST_CASE("one header brings all of the core") {
    const auto plan = penstock::plan(TokenBucket{.capacity = 9, .refill = penstock::per_minute(9)});
    Limiter limiter{TokenBucket{.capacity = 5, .refill = penstock::per_second(1)},
                    LocalStorage{{.max_keys = 1}},
                    penstock::CachedClock{}};
    CHECK(limiter.check(Key("tenant", 42), plan, 9).allowed);
    CHECK(penstock::Clock<penstock::CachedClock>);
    CHECK(penstock::StoreError{} == penstock::StoreError::none);
    CHECK(PENSTOCK_VERSION >= 10'000);
}

}  // namespace
