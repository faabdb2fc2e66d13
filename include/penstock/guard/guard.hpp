// SPDX-License-Identifier: MIT
// What guards share: each wraps a storage and is one.
#ifndef PENSTOCK_GUARD_GUARD_HPP
#define PENSTOCK_GUARD_GUARD_HPP

#include <penstock/check.hpp>
#include <penstock/clock.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// What a limiter wants to know of a guard before it is bound: what it wants to know of the storage beneath.
template <class Storage>
struct Guard {
    using DefaultClock = penstock::detail::DefaultClock<Storage>;
    static constexpr bool is_shared = penstock::detail::is_shared<Storage>;
};

/// The time that guards go by: the limiter's, or, if the store's own time decides, this machine's since the Unix epoch,
/// so that windows begin about when they do there.
class LocalTime {
public:
    [[nodiscard]] Micros at(Micros now) const noexcept {
        return now == store_time ? static_cast<Micros>(clock_.now().count()) : now;
    }

private:
    SystemClock clock_;
};

/// What an error means by the storage beneath, or that the request may pass.
template <class Bound>
[[nodiscard]] Decision failed(const Bound& bound, StoreError error) noexcept {
    if constexpr (requires { bound.failed(error); }) {
        return bound.failed(error);
    } else {
        return meaning_of(Allow{});
    }
}

template <class Bound>
concept Locating = requires(const Bound& bound) {
    bound.locate(std::string_view{});
};

template <class Bound, class Algorithm>
concept Batching =
    requires(Bound& bound, const Plan<Algorithm>& plan, std::span<const Check> checks, std::span<Decision> decisions) {
    bound.apply(checks, plan, Micros{}, decisions, [](std::size_t, StoreError) {});
};

template <class Bound, class Algorithm>
concept Asynchronous = requires(Bound& bound, const Plan<Algorithm>& plan) {
    bound.async_apply(
        Op::check, std::string_view{}, plan, Micros{}, std::uint64_t{1}, [](StoreError, const Decision&) {});
};

template <class Bound>
concept KnowsNodes = requires(const Bound& bound) {
    requires std::same_as<decltype(bound.node_of(std::string_view{}, Micros{})), std::size_t>;
};

/// What a guard's Bound leaves to the storage beneath, which `Derived::inner()` is. A guard declares its own state
/// before the storage: while that ends, handlers may ask again.
template <class Derived, class Inner>
class BoundGuard {
public:
    [[nodiscard]] Decision failed(StoreError error) const noexcept { return detail::failed(beneath(), error); }

    [[nodiscard]] std::size_t node_of(std::string_view key, Micros now) const noexcept {
        if constexpr (KnowsNodes<Inner>) {
            return beneath().node_of(key, now);
        } else {
            return 0;
        }
    }

    [[nodiscard]] std::optional<Decision> shed(Priority priority) const noexcept requires Shedding<Inner> {
        return beneath().shed(priority);
    }

private:
    [[nodiscard]] const Inner& beneath() const noexcept { return static_cast<const Derived*>(this)->inner(); }
};

/// How many checks of a batch a guard hands on at once, at most.
inline constexpr std::size_t longest_run = 64;

/// Hands a run of at most `longest_run` checks to the storage; `there(i, error)` is called for each afterwards.
template <class Bound, class Algorithm, class There>
void apply_run(Bound& bound,
               std::span<const Check> checks,
               const Plan<Algorithm>& plan,
               Micros now,
               std::span<Decision> decisions,
               There there) noexcept {
    if constexpr (Batching<Bound, Algorithm>) {
        std::uint64_t without = 0;
        bound.apply(checks, plan, now, decisions, [&](std::size_t i, StoreError error) {
            without |= std::uint64_t{1} << i;
            there(i, error);
        });
        for (std::size_t i = 0; i < checks.size(); ++i) {
            if ((without >> i & 1) == 0) {
                there(i, StoreError::none);
            }
        }
    } else {
        for (std::size_t i = 0; i < checks.size(); ++i) {
            there(i, bound.apply(Op::check, checks[i].key, plan, now, checks[i].cost, {}, decisions[i]));
        }
    }
}

/// A batch, of which `here(i)` decides what it can by itself; the rest is handed to the storage, in the same order,
/// after each `longest_run` checks. `there(i, error)` hears of each of these before `here` is asked of the next ones.
template <class Bound, class Algorithm, class Here, class There>
void apply_in_runs(Bound& bound,
                   std::span<const Check> checks,
                   const Plan<Algorithm>& plan,
                   Micros now,
                   std::span<Decision> decisions,
                   Here here,
                   There there) noexcept {
    std::array<Check, longest_run> run;
    std::array<std::size_t, longest_run> numbers{};
    std::array<Decision, longest_run> answers;
    for (std::size_t begin = 0; begin < checks.size(); begin += longest_run) {
        const std::size_t end = (std::min)(begin + longest_run, checks.size());
        std::size_t size = 0;
        for (std::size_t i = begin; i < end; ++i) {
            if (!here(i)) {
                run[size] = checks[i];
                numbers[size++] = i;
            }
        }
        const auto answered = [&](std::size_t place, StoreError error) {
            copy_fields(decisions[numbers[place]], answers[place]);
            there(numbers[place], error);
        };
        apply_run(bound, std::span<const Check>(run).first(size), plan, now, std::span(answers).first(size), answered);
    }
}

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_GUARD_HPP
