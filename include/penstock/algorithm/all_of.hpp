// SPDX-License-Identifier: MIT
// AllOf: several limits on one key, decided in one step: all of them or none.
#ifndef PENSTOCK_ALGORITHM_ALL_OF_HPP
#define PENSTOCK_ALGORITHM_ALL_OF_HPP

#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/lua.hpp>
#include <penstock/detail/pack.hpp>
#include <penstock/plan.hpp>
#include <penstock/rate.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Joins the decisions of the parts into the one that is reported.
class PartsDecision {
public:
    constexpr explicit PartsDecision(std::uint64_t cost) noexcept : cost_(cost) { reported_.allowed = true; }

    constexpr void add(const Decision& part) noexcept {
        const std::uint64_t before = part.allowed ? part.remaining + cost_ : part.remaining;
        least_before_ = before < least_before_ ? before : least_before_;
        const bool first_rejection = reported_.allowed && !part.allowed;
        const bool longer = !reported_.allowed && !part.allowed && part.retry_after > reported_.retry_after;
        const bool tighter = reported_.allowed && part.allowed && (none_yet_ || part.remaining < reported_.remaining);
        if (first_rejection || longer || tighter) {
            copy_fields(reported_, part);
        }
        none_yet_ = false;
    }

    [[nodiscard]] constexpr Decision whole() const noexcept {
        Decision decision = reported_;
        if (!decision.allowed) {
            decision.remaining = least_before_;
        }
        return decision;
    }

private:
    Decision reported_;
    bool none_yet_ = true;
    std::uint64_t least_before_ = ~std::uint64_t{0};  // remaining if nothing is taken, as when another part rejects
    std::uint64_t cost_;
};

}  // namespace detail

/// Several algorithms on one key, such as a burst limit and a daily quota. A cost is admitted only if every part admits
/// it; a rejection takes nothing from any part. limit, retry_after and reset_after are those of one part: the rejecting
/// one with the longest retry_after, or, if allowed, the one with the least remaining; the first on a tie. `remaining`
/// is the least of all parts. One to five parts of the library's algorithms.
template <class... Parts>
struct AllOf {
    static_assert(sizeof...(Parts) >= 1, "penstock: AllOf needs at least one part");

    explicit constexpr AllOf(const Parts&... limits) : parts(limits...) {}

    detail::Pack<Parts...> parts;

    friend constexpr bool operator==(const AllOf&, const AllOf&) noexcept = default;

    static constexpr bool refills = (detail::refills<Parts> || ...);

    using State = detail::Pack<typename Parts::State...>;
    using AllPlan = Plan<AllOf>;

    /// Takes `cost` from every part if each allows it. Pure: the state changes only if allowed and cost > 0.
    static constexpr Decision step(
        State& state, const AllPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept {
        State taken = state;
        const Decision decision = join(taken, plan, cost, [&]<class Part>(auto& part, const auto& its) {
            return Part::step(part, its, now, cost, phase);
        });
        if (decision.allowed) {
            state = taken;
        }
        return decision;
    }

    /// Gives `cost` back to every part.
    static constexpr Decision refund(State& state,
                                     const AllPlan& plan,
                                     Micros now,
                                     std::uint64_t cost,
                                     Micros phase) noexcept requires(Refundable<Parts>&&...) {
        return join(state, plan, 0, [&]<class Part>(auto& part, const auto& its) {
            return Part::refund(part, its, now, cost, phase);
        });
    }

    /// Takes `cost` from every part, even past its limit.
    static constexpr Decision charge(State& state,
                                     const AllPlan& plan,
                                     Micros now,
                                     std::uint64_t cost,
                                     Micros phase) noexcept requires(Chargeable<Parts>&&...) {
        return join(state, plan, 0, [&]<class Part>(auto& part, const auto& its) {
            return Part::charge(part, its, now, cost, phase);
        });
    }

    /// Takes `cost` in advance from every part if each can give it within `max_wait`; the wait is the longest of them.
    static constexpr Reservation reserve(State& state,
                                         const AllPlan& plan,
                                         Micros now,
                                         std::uint64_t cost,
                                         Micros phase,
                                         std::chrono::microseconds max_wait) noexcept requires(Reservable<Parts>&&...) {
        State taken = state;
        std::chrono::microseconds longest{0};
        const Decision decision = join(taken, plan, cost, [&]<class Part>(auto& part, const auto& its) {
            const Reservation reservation = Part::reserve(part, its, now, cost, phase, max_wait);
            longest = reservation.wait > longest ? reservation.wait : longest;
            return reservation.decision;
        });
        if (!decision.allowed) {
            return {step(state, plan, now, cost, phase)};
        }
        state = taken;
        return {decision, longest};
    }

    /// The i-th of n equal parts of every part, i below n.
    [[nodiscard]] constexpr AllOf share(std::uint64_t i, std::uint64_t n) const noexcept
        requires(Shareable<Parts>&&...) {
        return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
            return AllOf{detail::get<Index>(parts).share(i, n)...};
        }
        (std::index_sequence_for<Parts...>{});
    }

    /// For how long what was taken can be given back to every part. Only the reported part's time is known: of several
    /// token buckets another may have been full, and gives the first unit back after its own refill time; in several
    /// windows some may end at once.
    [[nodiscard]] static constexpr std::chrono::microseconds refundable_for(const AllPlan& plan,
                                                                            const Decision& decision) noexcept
        requires(Refundable<Parts>&&...) {
        if constexpr (sizeof...(Parts) == 1) {
            return (Parts::refundable_for(plan.template part<0>(), decision), ...);
        } else if constexpr ((std::same_as<Parts, TokenBucket> && ...)) {
            std::chrono::microseconds least = decision.reset_after;
            each([&]<class Part, std::size_t Index>() {
                const Rate& refill = plan.template part<Index>().algorithm().refill;
                least = (std::min)(least, refill.period / refill.count);
            });
            return least;
        } else {
            return std::chrono::microseconds{0};
        }
    }

    /// The steps in Lua, for storages that run scripts.
    struct Lua;

    /// When every part is fresh again, at the latest; never if a part does not tell.
    [[nodiscard]] static constexpr Micros fresh_at(const State& state) noexcept {
        return latest(state, []<class Part>(const auto& part) {
            if constexpr (Expiring<Part>) {
                return Part::fresh_at(part);
            } else {
                return ~Micros{0};
            }
        });
    }

    /// When what was taken from every part that tells would be given back.
    [[nodiscard]] static constexpr Micros paid_off_at(const State& state) noexcept {
        return latest(state, []<class Part>(const auto& part) {
            if constexpr (Expiring<Part>) {
                return detail::paid_off_at<Part>(part);
            } else {
                return Micros{0};
            }
        });
    }

private:
    template <class Visit>
    static constexpr void each(Visit&& visit) noexcept {
        [&]<std::size_t... Index>(std::index_sequence<Index...>) {
            (visit.template operator()<Parts, Index>(), ...);
        }
        (std::index_sequence_for<Parts...>{});
    }

    template <class TimeOfPart>
    static constexpr Micros latest(const State& state, TimeOfPart&& time_of_part) noexcept {
        Micros last = 0;
        each([&]<class Part, std::size_t Index>() {
            last = (std::max)(last, time_of_part.template operator()<Part>(detail::get<Index>(state)));
        });
        return last;
    }

    template <class StepOfPart>
    static constexpr Decision join(State& state,
                                   const AllPlan& plan,
                                   std::uint64_t cost,
                                   StepOfPart&& step_of_part) noexcept {
        detail::PartsDecision decision(cost);
        each([&]<class Part, std::size_t Index>() {
            decision.add(
                step_of_part.template operator()<Part>(detail::get<Index>(state), plan.template part<Index>()));
        });
        return decision.whole();
    }
};

template <class... Parts>
AllOf(Parts...) -> AllOf<Parts...>;

namespace detail {

/// PartsDecision in Lua: what stands before the parts, what joins one of them, what ends it. `taken` is what an allowed
/// part took.
struct LuaJoin {
    static constexpr std::string_view begin = R"lua(
local all,left,retry,reset,lag,limit,least=true,1/0,0,0,0,0,1/0
)lua";
    static constexpr std::string_view add = R"lua(
least=math.min(least,ok@ and left@+taken or left@)
if ok@ then
  if all and left@<left then left,reset,lag,limit=left@,reset@,lag@,limit@ end
elseif all or retry@-retry>lag-lag@ then
  all,left,retry,reset,lag,limit=false,left@,retry@,reset@,lag@,limit@
end
)lua";
    static constexpr std::string_view end = R"lua(
if not all then left=least end
)lua";
};

}  // namespace detail

template <class... Parts>
struct AllOf<Parts...>::Lua {
    static constexpr std::array<detail::LuaTwin, sizeof...(Parts)> twins{Parts::Lua::twin...};

    /// The numbers of the parts' plans, one after the other.
    [[nodiscard]] static constexpr auto numbers(const AllPlan& plan, Micros phase) noexcept {
        return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
            return concatenated(Parts::Lua::numbers(plan.template part<Index>(), phase)...);
        }
        (std::index_sequence_for<Parts...>{});
    }

private:
    template <std::size_t... Sizes>
    static constexpr auto concatenated(const std::array<std::uint64_t, Sizes>&... arrays) noexcept {
        std::array<std::uint64_t, (Sizes + ...)> all{};
        auto end = all.begin();
        ((end = std::copy(arrays.begin(), arrays.end(), end)), ...);
        return all;
    }
};

template <class... Parts>
class Plan<AllOf<Parts...>> {
public:
    explicit constexpr Plan(const AllOf<Parts...>& limits) : Plan(limits, std::index_sequence_for<Parts...>{}) {}

    [[nodiscard]] constexpr AllOf<Parts...> algorithm() const noexcept {
        return [this]<std::size_t... Index>(std::index_sequence<Index...>) {
            return AllOf<Parts...>{this->template part<Index>().algorithm()...};
        }
        (std::index_sequence_for<Parts...>{});
    }

    template <std::size_t Index>
    [[nodiscard]] constexpr const auto& part() const noexcept {
        return detail::get<Index>(parts_);
    }

    /// The most that is admitted at once: the least limit of the parts.
    [[nodiscard]] constexpr std::uint64_t limit() const noexcept requires(detail::Limited<Plan<Parts>>&&...) {
        return [this]<std::size_t... Index>(std::index_sequence<Index...>) {
            return (std::min)({this->template part<Index>().limit()...});
        }
        (std::index_sequence_for<Parts...>{});
    }

    /// Whether the steps want the key's phase.
    [[nodiscard]] constexpr bool staggered() const noexcept {
        return [this]<std::size_t... Index>(std::index_sequence<Index...>) {
            return (detail::is_staggered(this->template part<Index>()) || ...);
        }
        (std::index_sequence_for<Parts...>{});
    }

    /// How long what was taken from the parts takes, as in detail::Payoff: the longest of them.
    [[nodiscard]] constexpr unsigned payoff() const noexcept {
        return [this]<std::size_t... Index>(std::index_sequence<Index...>) {
            unsigned longest = 0;
            ((longest = (std::max)(longest, detail::payoff(this->template part<Index>()))), ...);
            return longest;
        }
        (std::index_sequence_for<Parts...>{});
    }

private:
    template <std::size_t... Index>
    constexpr Plan(const AllOf<Parts...>& limits, std::index_sequence<Index...>)
        : parts_(Plan<Parts>(detail::get<Index>(limits.parts))...) {}

    detail::Pack<Plan<Parts>...> parts_;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_ALGORITHM_ALL_OF_HPP
