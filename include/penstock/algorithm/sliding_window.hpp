// SPDX-License-Identifier: MIT
// SlidingWindow: `limit` units in any window, counted with two counters and a weight.
#ifndef PENSTOCK_ALGORITHM_SLIDING_WINDOW_HPP
#define PENSTOCK_ALGORITHM_SLIDING_WINDOW_HPP

#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/lua.hpp>
#include <penstock/detail/wide.hpp>
#include <penstock/detail/window.hpp>
#include <penstock/plan.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

/// At most about `limit` units in any span of `window`: the count of the previous window on a fixed grid, weighted by
/// the part of it that a window ending now still covers, plus the count of the current one. Admits a cost if
/// previous x (1 - elapsed / window) + current + cost <= limit. Only admitted cost counts.
/// Allowed: limit 1 to 2^39, window 1 us to 2^45 us. Otherwise a plan of it throws std::invalid_argument.
/// Source: the sliding window counter as described by Cloudflare in 2017; exact here, with no floating point.
struct SlidingWindow {
    std::uint64_t limit = 0;              ///< units per window: also the largest cost
    std::chrono::microseconds window{0};  ///< length of a window
    Align align = Align::epoch;           ///< staggered: each client's windows begin at a shift of its own

    friend constexpr bool operator==(const SlidingWindow&, const SlidingWindow&) noexcept = default;

    using State = detail::WindowState;
    using WindowPlan = Plan<SlidingWindow>;

    /// Takes `cost` if it fits. Pure: the state changes only if allowed and cost > 0.
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
        return detail::Counts::fresh_at(state, 2);
    }

    /// When what was taken would be given back at the average rate of the slowest plan so far.
    [[nodiscard]] static constexpr Micros paid_off_at(const State& state) noexcept {
        return detail::Counts::paid_off_at(state);
    }

    /// For how long what was taken can be given back: until its window ends, which is one window before it stops to
    /// weigh.
    [[nodiscard]] static constexpr std::chrono::microseconds refundable_for(const WindowPlan& plan,
                                                                            const Decision& decision) noexcept;

    /// The i-th of n equal parts, i below n: the limits of all add up to this one's.
    [[nodiscard]] constexpr SlidingWindow share(std::uint64_t i, std::uint64_t n) const noexcept {
        SlidingWindow part = *this;
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
    static constexpr std::chrono::microseconds until_room(const detail::Counts& counts,
                                                          std::uint64_t limit,
                                                          std::uint64_t cost) noexcept;
};

template <>
class Plan<SlidingWindow> {
public:
    explicit constexpr Plan(const SlidingWindow& sliding) : algorithm_(sliding) {
        detail::validate_limit("SlidingWindow.limit", sliding.limit);
        detail::validate_period("SlidingWindow.window", sliding.window);
        detail::validate_align("SlidingWindow.align", sliding.align);
        slowness_ = detail::WindowSlowness(length(), sliding.limit);
    }

    [[nodiscard]] constexpr const SlidingWindow& algorithm() const noexcept { return algorithm_; }

    /// The most that is admitted at once.
    [[nodiscard]] constexpr std::uint64_t limit() const noexcept { return algorithm_.limit; }

    /// Whether the steps want the key's phase.
    [[nodiscard]] constexpr bool staggered() const noexcept { return algorithm_.align == Align::staggered; }

    /// How long a window's units take at their average rate, as in detail::Payoff.
    [[nodiscard]] constexpr unsigned payoff() const noexcept { return slowness_.payoff_of(algorithm_.limit); }

private:
    friend struct SlidingWindow;

    [[nodiscard]] constexpr std::uint64_t length() const noexcept {
        return static_cast<std::uint64_t>(algorithm_.window.count());
    }

    SlidingWindow algorithm_;
    detail::WindowSlowness slowness_;
};

constexpr std::chrono::microseconds SlidingWindow::refundable_for(const WindowPlan& plan,
                                                                  const Decision& decision) noexcept {
    return (std::max)(decision.reset_after - plan.algorithm().window, std::chrono::microseconds{0});
}

constexpr detail::Counts SlidingWindow::counts(const State& state,
                                               const WindowPlan& plan,
                                               Micros now,
                                               Micros phase) noexcept {
    return detail::Counts(state, plan.length(), plan.staggered() ? static_cast<std::int64_t>(phase) : 0, now);
}

/// From now until `cost`, at most the limit and not admitted at present, is.
constexpr std::chrono::microseconds SlidingWindow::until_room(const detail::Counts& counts,
                                                              std::uint64_t limit,
                                                              std::uint64_t cost) noexcept {
    // As the weight of the older count falls with every microsecond, the wait is where it meets the room that is left.
    const std::uint64_t length = counts.length;
    if (counts.current <= limit - cost) {
        const std::uint64_t room = limit - cost - counts.current;
        return counts.until(length - detail::multiply_add_divide(room, length, 0, counts.previous).quotient);
    }
    const std::uint64_t room = limit - cost;
    return counts.until(2 * length - detail::multiply_add_divide(room, length, 0, counts.current).quotient);
}

constexpr Decision SlidingWindow::decide(const detail::Counts& counts,
                                         const WindowPlan& plan,
                                         bool allowed,
                                         std::chrono::microseconds retry_after) noexcept {
    const std::uint64_t limit = plan.algorithm_.limit;
    const std::uint64_t used = counts.carried() + counts.current;
    const std::uint64_t windows_to_pass = counts.current > 0 ? 2 : (counts.previous > 0 ? 1 : 0);
    return {.allowed = allowed,
            .limit = limit,
            .remaining = used < limit ? limit - used : 0,
            .retry_after = retry_after,
            .reset_after =
                windows_to_pass > 0 ? counts.until(windows_to_pass * counts.length) : std::chrono::microseconds{0}};
}

PENSTOCK_INLINE constexpr Decision SlidingWindow::step(
    State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept {
    detail::Counts window = counts(state, plan, now, phase);
    const std::uint64_t limit = plan.algorithm_.limit;
    if (cost == 0) {
        return decide(window, plan, true, {});
    }
    if (cost > limit) {
        return decide(window, plan, false, never);
    }
    if (window.carried() + window.current > limit - cost) {
        return decide(window, plan, false, until_room(window, limit, cost));
    }
    window.current += cost;
    state = window.state(window.time, plan.slowness_);
    return decide(window, plan, true, {});
}

constexpr Decision SlidingWindow::refund(
    State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept {
    detail::Counts window = counts(state, plan, now, phase);
    if (cost > 0 && window.current > 0) {
        window.current = cost < window.current ? window.current - cost : 0;
        state = window.state(detail::Counts::stamp(state), plan.slowness_);
    }
    return decide(window, plan, true, {});
}

constexpr Decision SlidingWindow::charge(
    State& state, const WindowPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept {
    detail::Counts window = counts(state, plan, now, phase);
    const std::uint64_t limit = plan.algorithm_.limit;
    if (cost > 0) {
        window.add_up_to(2 * limit, cost);
        state = window.state(window.time, plan.slowness_);
    }
    const bool within = window.carried() + window.current <= limit;
    return decide(window, plan, within, within ? std::chrono::microseconds{0} : until_room(window, limit, 0));
}

struct SlidingWindow::Lua {
    static constexpr detail::LuaTwin twin{
        .name = "sliding",
        .state = "slow@,stamp@,prev@,count@,span@",
        .narrow = "BI7I4I4I5",
        .wide = "BI7I6I6I6",
        .fits = "prev@<4294967296 and count@<4294967296 and span@<1099511627776",
        .foreign = "slow@<64 or slow@>127",
        .plan = "limit@,length@,phase@,pace@",
        .large = "(prev@+count@+limit@)*(length@+span@)>=9007199254740992",
        .advance = R"lua(
local time@,lag@=stamp@,stamp@-now
if lag@<0 then time@,lag@=now,0 end
if slow@<pace@ then slow@=pace@ end
if span@~=length@ then
  if prev@>0 then
    local rest=span@-(stamp@-phase@%span@)%span@
    local q,r
    if not divide then
      q=prev@*rest
      r=q%span@
      q=(q-r)/span@
    else
      q,r=divide(prev@,rest,span@)
    end
    if r>0 then q=q+1 end
    prev@,count@=0,math.min(count@+q,1099511627776)
  end
  span@=length@
end
local since@=(time@-phase@%length@)%length@
local start@=time@-since@
if stamp@<start@ then
  prev@=stamp@<start@-length@ and 0 or count@
  count@=0
end
local weight@=0
if prev@>0 then
  local r
  if not divide then
    weight@=prev@*(length@-since@)
    r=weight@%length@
    weight@=(weight@-r)/length@
  else
    weight@,r=divide(prev@,length@-since@,length@)
  end
  if r>0 then weight@=weight@+1 end
end
local ok@,lack@,retry@=true,0,0
)lua",
        .check = R"lua(
if cost>0 then
  if cost>limit@ then
    ok@,retry@=false,1/0
  elseif weight@+count@>limit@-cost then
    ok@,lack@=false,cost
  else
    stamp@,count@=time@,count@+cost
  end
end
)lua",
        .refund = R"lua(
if count@>0 then did@,count@=true,math.max(count@-cost,0) end
)lua",
        .charge = R"lua(
stamp@,count@=time@,count@+math.min(cost,math.max(2*limit@-weight@-count@,0))
ok@=weight@+count@<=limit@
)lua",
        .wait = R"lua(
if not ok@ and retry@==0 then
  local room,by=limit@-lack@-count@,prev@
  retry@=length@-since@
  if room<0 then room,by,retry@=limit@-lack@,count@,retry@+length@ end
  if not divide then
    local product=room*length@
    retry@=retry@-(product-product%by)/by
  else
    retry@=retry@-(divide(room,length@,by))
  end
end
)lua",
        .patient = {},
        .take = {},
        .answer = R"lua(
local left@,reset@=limit@-weight@-count@,0
if left@<0 then left@=0 end
if count@>0 then
  reset@=2*length@-since@
elseif prev@>0 then
  reset@=length@-since@
end
)lua",
        .fresh = "(count@+prev@>0 and stamp@+2^(slow@-63) or 0)",
    };

    /// The numbers of a plan, in the order of twin.plan.
    [[nodiscard]] static constexpr std::array<std::uint64_t, 4> numbers(const WindowPlan& plan, Micros phase) noexcept {
        return {plan.algorithm_.limit, plan.length(), plan.staggered() ? phase : 0, 64 + plan.slowness_.window};
    }
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_ALGORITHM_SLIDING_WINDOW_HPP
