// SPDX-License-Identifier: MIT
// What an algorithm, a storage and a clock must be: the syntax, the obligations, and a sentence for what is missing.
#ifndef PENSTOCK_CONCEPTS_HPP
#define PENSTOCK_CONCEPTS_HPP

#include <penstock/check.hpp>
#include <penstock/clock.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

/// A clock: `now()` counts microseconds from an epoch of its own. It may be called from any thread. It may go back: a
/// limiter mints nothing from that. Copies given to different limiters need not agree.
template <class T>
concept Clock = requires(const T& clock) {
    requires std::copy_constructible<T>;
    requires std::same_as<decltype(clock.now()), std::chrono::microseconds>;
    requires noexcept(clock.now());
};

/// The largest state of an algorithm, in bytes.
inline constexpr std::size_t largest_state = 120;

/// An algorithm: a trivially copyable struct of parameters, with
/// - `State`: trivially copyable and default constructible, at most `largest_state` bytes; all zero bytes mean a fresh
///   client.
/// - `static Decision step(State&, const Plan<T>&, Micros now, std::uint64_t cost, Micros phase) noexcept`: decides.
///   Pure: it may run again with the same input, on any thread. It changes the state only if it allows and cost > 0;
///   cost 0 is allowed. `now` is below 2^53 and may be earlier than last time. `reset_after` says when the state will
///   be as good as fresh: from then on the storage may forget it. `phase` is a fixed public hash of the key if the
///   plan has `bool staggered() const` and it is true, else 0.
/// - optional `void validate() const`: throws std::invalid_argument for parameters out of range.
/// - optional `refund` and `charge` (parameters as `step`), and `reserve` (one more: `std::chrono::microseconds
///   max_wait`; gives a Reservation): the limiter's members of these names need them.
/// - optional `T share(std::uint64_t i, std::uint64_t n) const noexcept`: the i-th of n parts of the parameters, for
///   guards that divide a limit; with it a `==`.
/// - optional `static Micros fresh_at(const State&) noexcept`: from when on the state is as good as fresh under every
///   plan it was used with; 0 if it is. Without it the storage keeps beside the state what `reset_after` said last.
/// - optional `static Micros paid_off_at(const State&) noexcept`: when what was used is paid off, and with it `unsigned
///   payoff() const noexcept` of the plan: how long a full limit takes, as four times the logarithm to base 2 of its
///   microseconds, at most 255. When there is no room for a new client, the one with the smallest share of its limit to
///   pay off makes place; without them, the first to be fresh.
/// - optional `static std::chrono::microseconds refundable_for(const Plan<T>&, const Decision&) noexcept`, with
///   `refund`: for how long after an admission with this decision the units it took can be given back exactly, which is
///   until time itself has given back the first of them. Without it what a guard holds is never given back.
/// - optional `std::uint64_t limit() const noexcept` of the plan: the most units that it ever admits at once. Without
///   it, and `==` of the parameters, guards lease nothing.
/// The parameters are the base of their plan, so the struct must not be final.
template <class T>
concept Algorithm = requires(typename T::State& state, const Plan<T>& plan) {
    requires std::is_trivially_copyable_v<typename T::State>;
    requires std::is_default_constructible_v<typename T::State>;
    requires sizeof(typename T::State) <= largest_state;
    requires std::is_trivially_copyable_v<Plan<T>>;
    requires std::same_as<decltype(T::step(state, plan, Micros{}, std::uint64_t{1}, Micros{})), Decision>;
    requires noexcept(T::step(state, plan, Micros{}, std::uint64_t{1}, Micros{}));
};

/// An algorithm that can give back.
template <class T>
concept Refundable = requires(typename T::State& state, const Plan<T>& plan) {
    requires std::same_as<decltype(T::refund(state, plan, Micros{}, std::uint64_t{}, Micros{})), Decision>;
};

/// An algorithm that can take past its limit.
template <class T>
concept Chargeable = requires(typename T::State& state, const Plan<T>& plan) {
    requires std::same_as<decltype(T::charge(state, plan, Micros{}, std::uint64_t{}, Micros{})), Decision>;
};

/// An algorithm that can take in advance.
template <class T>
concept Reservable = requires(typename T::State& state, const Plan<T>& plan, std::chrono::microseconds max_wait) {
    requires std::same_as<decltype(T::reserve(state, plan, Micros{}, std::uint64_t{}, Micros{}, max_wait)),
                          Reservation>;
};

/// An algorithm that can be divided: `share(i, n)` is the i-th of n parts, which together allow what the whole does.
/// The last is never smaller than another.
template <class T>
concept Shareable = requires(const T& algorithm) {
    requires std::same_as<decltype(algorithm.share(std::uint64_t{}, std::uint64_t{})), T>;
    requires noexcept(algorithm.share(std::uint64_t{}, std::uint64_t{}));
    requires std::same_as<decltype(algorithm == algorithm), bool>;
};

/// An algorithm whose states tell when they are as good as fresh.
template <class T>
concept Expiring = requires(const typename T::State& state) {
    requires std::same_as<decltype(T::fresh_at(state)), Micros>;
};

namespace detail {

/// Whether units come back bit by bit, in some part at least: those algorithms can take in advance.
template <class Algorithm>
inline constexpr bool refills = Reservable<Algorithm> || requires {
    requires Algorithm::refills;
};

/// A plan that tells the most that it ever admits at once.
template <class AnyPlan>
concept Limited = requires(const AnyPlan& plan) {
    requires std::same_as<decltype(plan.limit()), std::uint64_t>;
};

template <class Algorithm>
[[nodiscard]] constexpr Micros paid_off_at(const typename Algorithm::State& state) noexcept {
    if constexpr (requires { Algorithm::paid_off_at(state); }) {
        return Algorithm::paid_off_at(state);
    } else {
        return Algorithm::fresh_at(state);
    }
}

template <class Storage, class Algorithm>
using BoundOf = typename Storage::template Bound<Algorithm>;

template <class Storage, class Algorithm>
inline constexpr bool binds = std::is_constructible_v<BoundOf<Storage, Algorithm>, const Storage&>;

/// What is bound goes by priorities.
template <class Bound>
concept Shedding = requires(const Bound& bound) {
    requires std::same_as<decltype(bound.shed(Priority::low)), std::optional<Decision>>;
    requires noexcept(bound.shed(Priority::low));
};

}  // namespace detail

/// A storage: options, which a limiter binds to its algorithm by constructing `Bound<Algorithm>` from them. What is
/// bound decides, from any thread and without throwing:
/// - `StoreError apply(Op, std::string_view key, const Plan<A>&, Micros now, std::uint64_t cost,
///   std::chrono::microseconds max_wait, Decision&)`: writes the decision, or says why there is none. `max_wait` is for
///   Op::reserve alone, and the wait of an admitted reservation stands in the decision's retry_after.
/// - optional `locate(key)`: a key looked up in advance, which `apply` takes in its stead; copyable, and default
///   constructible for batches. The limiter calls it before it reads the clock, and for all of a batch first, so that
///   the memory has time to answer.
/// - optional `DefaultClock`: the clock of a limiter that was given none; otherwise SteadyClock.
/// - optional `static constexpr bool is_shared = true`: other processes have the same states, so clocks that count from
///   the boot of a machine do not compile with it, and ServerClock does: then `now` is `store_time`.
/// - optional `apply(std::span<const Check>, plan, now, std::span<Decision>, failed)`: a batch, whose latencies
///   overlap, with as many decisions; `failed(i, StoreError)` is called for those without one.
/// - optional `Decision failed(StoreError) const noexcept`: what an error means; otherwise the request may pass.
/// - optional `async_apply(op, key, plan, now, cost, handler)`, for the limiter's async_check: `handler(StoreError,
///   const Decision&)` is called exactly once, with what the error means if there is one, here or on another thread.
/// - optional `awaitable(op, key, plan, now, cost)`: what `co_await` takes; otherwise one is made of async_apply.
/// - optional `std::optional<Decision> shed(Priority) noexcept`: decides without asking the store; async_check of a
///   Check asks it first. What has it goes by the priorities of a batch, too.
template <class T, class A>
concept Storage = requires(detail::BoundOf<T, A>& bound, const Plan<A>& plan, Decision& decision) {
    requires detail::binds<T, A>;
    requires std::same_as<decltype(bound.apply(Op::check, std::string_view{}, plan, Micros{}, 1, never, decision)),
                          StoreError>;
    requires noexcept(bound.apply(Op::check, std::string_view{}, plan, Micros{}, 1, never, decision));
};

namespace detail {

// Each of these fails with the sentence that names what is missing: compilers explain a failed concept far worse.

template <class T>
consteval bool explain_clock() {
    static_assert(
        requires(const T& clock) { clock.now(); },
        "penstock: a clock needs a member function `now() const` without parameters");
    if constexpr (requires(const T& clock) { clock.now(); }) {
        static_assert(std::same_as<decltype(std::declval<const T&>().now()), std::chrono::microseconds>,
                      "penstock: a clock's now() must return std::chrono::microseconds");
        static_assert(noexcept(std::declval<const T&>().now()), "penstock: a clock's now() must be noexcept");
    }
    static_assert(std::copy_constructible<T>, "penstock: a clock must be copyable");
    return Clock<T>;
}

template <class T>
concept HasStep = requires(typename T::State& state, const Plan<T>& plan) {
    T::step(state, plan, Micros{}, std::uint64_t{1}, Micros{});
};

template <class T>
concept StepDecides = requires(typename T::State& state, const Plan<T>& plan) {
    requires std::same_as<decltype(T::step(state, plan, Micros{}, std::uint64_t{1}, Micros{})), Decision>;
};

template <class T>
concept StepIsNoexcept = requires(typename T::State& state, const Plan<T>& plan) {
    requires noexcept(T::step(state, plan, Micros{}, std::uint64_t{1}, Micros{}));
};

template <class T>
concept HasState = requires {
    typename T::State;
};

template <class T>
consteval bool explain_algorithm() {
    static_assert(HasState<T>, "penstock: an algorithm needs a type `State`: what is remembered of a client");
    if constexpr (HasState<T>) {
        static_assert(std::is_trivially_copyable_v<typename T::State>,
                      "penstock: an algorithm's State must be trivially copyable");
        static_assert(std::is_default_constructible_v<typename T::State>,
                      "penstock: an algorithm's State must be default constructible");
        static_assert(sizeof(typename T::State) <= largest_state,
                      "penstock: an algorithm's State must be at most 120 bytes");
        static_assert(std::is_trivially_copyable_v<Plan<T>>,
                      "penstock: an algorithm's parameters must be trivially copyable");
        static_assert(HasStep<T>,
                      "penstock: an algorithm needs `static Decision step(State&, const Plan<...>&, Micros "
                      "now, std::uint64_t cost, Micros phase) noexcept`");
        static_assert(!HasStep<T> || StepDecides<T>, "penstock: an algorithm's step must return penstock::Decision");
        static_assert(!HasStep<T> || StepIsNoexcept<T>, "penstock: an algorithm's step must be noexcept");
    }
    return true;
}

template <class T, class A>
concept HasBound = requires {
    typename BoundOf<T, A>;
};

template <class T, class A>
concept HasApply = requires(BoundOf<T, A>& bound, const Plan<A>& plan, Decision& decision) {
    bound.apply(Op::check, std::string_view{}, plan, Micros{}, 1, never, decision);
};

template <class Storage>
struct DefaultClockOf {
    using Type = SteadyClock;
};

template <class Storage>
    requires requires {
        typename Storage::DefaultClock;
    }
struct DefaultClockOf<Storage> {
    using Type = typename Storage::DefaultClock;
};

template <class Storage>
using DefaultClock = typename DefaultClockOf<Storage>::Type;

template <class T>
inline constexpr bool is_shared = requires {
    requires T::is_shared;
};

template <class T>
inline constexpr bool counts_from_boot = requires {
    requires T::counts_from_boot;
};

template <class T>
inline constexpr bool is_the_stores = requires {
    requires T::is_the_stores;
};

template <class Storage, class Clock>
consteval bool explain_time() {
    static_assert(
        !is_shared<Storage> || !counts_from_boot<Clock>,
        "penstock: this clock counts from the boot of a machine: a storage that several processes share needs "
        "ServerClock or SystemClock");
    static_assert(is_shared<Storage> || !is_the_stores<Clock>,
                  "penstock: ServerClock needs a storage with a server, such as RedisStorage");
    return true;
}

template <class T, class A>
consteval bool explain_storage() {
    static_assert(HasBound<T, A>, "penstock: a storage needs a class template `Bound<Algorithm>`: what decides");
    if constexpr (HasBound<T, A>) {
        static_assert(binds<T, A>, "penstock: a storage's Bound<Algorithm> must be constructible from the storage");
        static_assert(HasApply<T, A>,
                      "penstock: a storage's Bound<Algorithm> needs `StoreError apply(Op, std::string_view key, const "
                      "Plan<...>&, Micros now, std::uint64_t cost, std::chrono::microseconds max_wait, Decision&) "
                      "noexcept`");
        static_assert(Storage<T, A>, "penstock: a storage's apply must be noexcept and return penstock::StoreError");
    }
    return true;
}

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_CONCEPTS_HPP
