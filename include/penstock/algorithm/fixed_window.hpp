// SPDX-License-Identifier: MIT
// FixedWindow: `limit` units in each window; windows follow one another on a fixed grid.
#ifndef PENSTOCK_ALGORITHM_FIXED_WINDOW_HPP
#define PENSTOCK_ALGORITHM_FIXED_WINDOW_HPP

#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/lua.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/detail/wide.hpp>
#include <penstock/detail/window.hpp>
#include <penstock/plan.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

PENSTOCK_BEGIN_NAMESPACE

/// At most `limit` units in each window. Windows begin at multiples of `window` since the clock's epoch plus `offset`,
/// whatever the traffic. Around a boundary up to twice the limit passes within one window's length: for quotas, not
/// for protection against bursts.
/// Allowed: limit 1 to 2^39, window 1 us to 2^45 us, offset -2^45 us to 2^45 us. Otherwise a plan of it throws
/// std::invalid_argument.
struct FixedWindow {
    std::uint64_t limit = 0;              ///< units per window: also the largest cost
    std::chrono::microseconds window{0};  ///< length of a window
    Align align = Align::epoch;           ///< staggered: each client's windows begin at a shift of its own
    std::chrono::microseconds offset{0};  ///< moves all boundaries, such as to a time zone's midnight

    friend constexpr bool operator==(const FixedWindow&, const FixedWindow&) noexcept = default;

    using State = detail::WindowState;
    using WindowPlan = Plan<FixedWindow>;

    /// Takes `cost` if the window holds it. Pure: the state changes only if allowed and cost > 0.
    static constexpr Decision step(
        State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept;

    /// Gives `cost` back to the present window, at most what was taken in it.
    static constexpr Decision refund(
        State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept;

    /// Takes `cost` even past the limit, up to twice the limit in all.
    static constexpr Decision charge(
        State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept;

    /// When nothing counts any more under any plan so far, at the latest.
    [[nodiscard]] static constexpr Micros fresh_at(const State& state) noexcept {
        return detail::Counts::fresh_at(state, 1);
    }

    /// When what was taken would be given back at the average rate of the slowest plan so far.
    [[nodiscard]] static constexpr Micros paid_off_at(const State& state) noexcept {
        return detail::Counts::paid_off_at(state);
    }

    /// For how long what was taken can be given back: until its window ends.
    [[nodiscard]] static constexpr std::chrono::microseconds refundable_for(const WindowPlan&,
                                                                            const Decision& decision) noexcept {
        return decision.reset_after;
    }

    /// The i-th of n equal parts, i below n: the limits of all add up to this one's.
    [[nodiscard]] constexpr FixedWindow share(std::uint64_t i, std::uint64_t n) const noexcept {
        FixedWindow part = *this;
        part.limit = detail::part_of(limit, i, n);
        return part;
    }

    /// The steps in Lua, for storages that run scripts.
    struct Lua;

private:
    static constexpr detail::Counts counts(const State& state,
                                           const WindowPlan& plan,
                                           Micros now,
                                           Micros phase) noexcept;
    static constexpr Decision decide(const detail::Counts& counts,
                                     const WindowPlan& plan,
                                     bool allowed,
                                     std::chrono::microseconds retry_after) noexcept;
};

template <>
class Plan<FixedWindow> {
public:
    explicit constexpr Plan(const FixedWindow& fixed) : algorithm_(fixed) {
        detail::validate_limit("FixedWindow.limit", fixed.limit);
        detail::validate_period("FixedWindow.window", fixed.window);
        detail::validate_align("FixedWindow.align", fixed.align);
        const std::int64_t offset = fixed.offset.count();
        if (offset < -detail::longest_period || offset > detail::longest_period) {
            detail::throw_invalid(
                "FixedWindow.offset", std::to_string(offset) + " us", "-35184372088832 us to 35184372088832 us");
        }
        slowness_ = detail::WindowSlowness(length(), fixed.limit);
    }

    [[nodiscard]] constexpr const FixedWindow& algorithm() const noexcept { return algorithm_; }

    /// The most that is admitted at once.
    [[nodiscard]] constexpr std::uint64_t limit() const noexcept { return algorithm_.limit; }

    /// Whether the steps want the key's phase.
    [[nodiscard]] constexpr bool staggered() const noexcept { return algorithm_.align == Align::staggered; }

    /// How long a window's units take at their average rate, as in detail::Payoff.
    [[nodiscard]] constexpr unsigned payoff() const noexcept { return slowness_.payoff_of(algorithm_.limit); }

private:
    friend struct FixedWindow;

    [[nodiscard]] constexpr std::uint64_t length() const noexcept {
        return static_cast<std::uint64_t>(algorithm_.window.count());
    }

    FixedWindow algorithm_;
    detail::WindowSlowness slowness_;
};

constexpr detail::Counts FixedWindow::counts(const State& state,
                                             const WindowPlan& plan,
                                             Micros now,
                                             Micros phase) noexcept {
    const std::int64_t stagger = plan.staggered() ? static_cast<std::int64_t>(phase) : 0;
    detail::Counts counts(state, plan.length(), plan.algorithm_.offset.count() + stagger, now);
    counts.previous = 0;
    return counts;
}

constexpr Decision FixedWindow::decide(const detail::Counts& counts,
                                       const WindowPlan& plan,
                                       bool allowed,
                                       std::chrono::microseconds retry_after) noexcept {
    const std::uint64_t limit = plan.algorithm_.limit;
    return {.allowed = allowed,
            .limit = limit,
            .remaining = counts.current < limit ? limit - counts.current : 0,
            .retry_after = retry_after,
            .reset_after = counts.current > 0 ? counts.until(counts.length) : std::chrono::microseconds{0}};
}

PENSTOCK_INLINE constexpr Decision FixedWindow::step(
    State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept {
    detail::Counts window = counts(state, plan, now, phase);
    const std::uint64_t limit = plan.algorithm_.limit;
    if (cost == 0) {
        return decide(window, plan, true, {});
    }
    if (cost > limit) {
        return decide(window, plan, false, never);
    }
    if (window.current > limit - cost) {
        return decide(window, plan, false, window.until(window.length));
    }
    window.current += cost;
    state = window.state(window.time, plan.slowness_);
    return decide(window, plan, true, {});
}

constexpr Decision FixedWindow::refund(
    State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept {
    detail::Counts window = counts(state, plan, now, phase);
    if (cost > 0 && window.current > 0) {
        window.current = cost < window.current ? window.current - cost : 0;
        state = window.state(detail::Counts::stamp(state), plan.slowness_);
    }
    return decide(window, plan, true, {});
}

constexpr Decision FixedWindow::charge(
    State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept {
    detail::Counts window = counts(state, plan, now, phase);
    const std::uint64_t limit = plan.algorithm_.limit;
    if (cost > 0) {
        window.add_up_to(2 * limit, cost);
        state = window.state(window.time, plan.slowness_);
    }
    const bool within = window.current <= limit;
    return decide(window, plan, within, within ? std::chrono::microseconds{0} : window.until(window.length));
}

struct FixedWindow::Lua {
    // The length that a count was taken under is not stored: only with a count of the window before does it matter.
    static constexpr detail::LuaTwin twin{
        .name = "fixed",
        .state = "slow@,stamp@,count@",
        .narrow = "BI7I4",
        .wide = "BI7I6",
        .fits = "count@<4294967296",
        .foreign = "slow@<128 or slow@>191",
        .plan = "limit@,length@,phase@,offset@,pace@",
        .large = "false",
        .advance = R"lua(
local time@,lag@=stamp@,stamp@-now
if lag@<0 then time@,lag@=now,0 end
if slow@<pace@ then slow@=pace@ end
local since@=(time@-phase@%length@-(offset@-35184372088832)%length@)%length@
if stamp@<time@-since@ then count@=0 end
local ok@,lack@,retry@=true,0,0
)lua",
        .check = R"lua(
if cost>0 then
  if cost>limit@ then
    ok@,retry@=false,1/0
  elseif count@>limit@-cost then
    ok@=false
  else
    stamp@,count@=time@,count@+cost
  end
end
)lua",
        .refund = R"lua(
if count@>0 then did@,count@=true,math.max(count@-cost,0) end
)lua",
        .charge = R"lua(
stamp@,count@=time@,count@+math.min(cost,math.max(2*limit@-count@,0))
ok@=count@<=limit@
)lua",
        .wait = R"lua(
if not ok@ and retry@==0 then retry@=length@-since@ end
)lua",
        .patient = {},
        .take = {},
        .answer = R"lua(
local left@,reset@=limit@-count@,0
if left@<0 then left@=0 end
if count@>0 then reset@=length@-since@ end
)lua",
        .fresh = "(count@>0 and stamp@+2^(slow@-128) or 0)",
    };

    /// The numbers of a plan, in the order of twin.plan; the offset is moved so that it is not negative.
    [[nodiscard]] static constexpr std::array<std::uint64_t, 5> numbers(const WindowPlan& plan, Micros phase) noexcept {
        return {plan.algorithm_.limit,
                plan.length(),
                plan.staggered() ? phase : 0,
                static_cast<std::uint64_t>(plan.algorithm_.offset.count() + detail::longest_period),
                128 + plan.slowness_.window};
    }
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_ALGORITHM_FIXED_WINDOW_HPP
