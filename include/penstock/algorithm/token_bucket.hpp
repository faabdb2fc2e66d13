// SPDX-License-Identifier: MIT
// TokenBucket: a burst of up to `capacity`, then `refill` for ever.
#ifndef PENSTOCK_ALGORITHM_TOKEN_BUCKET_HPP
#define PENSTOCK_ALGORITHM_TOKEN_BUCKET_HPP

#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/lua.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/detail/wide.hpp>
#include <penstock/plan.hpp>
#include <penstock/rate.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>

PENSTOCK_BEGIN_NAMESPACE

/// A bucket that starts full with `capacity` tokens and gets `refill` back, continuously, up to the capacity. In any
/// span of time it admits at most capacity + refill x span.
/// Allowed: capacity 1 to 2^39, period 1 us to 2^45 us, at most 10 million tokens per second, and twice the capacity
/// refilled in less than 2^53 us. Otherwise a plan of it throws std::invalid_argument.
/// Source: the (continuous-state) leaky bucket as a meter, ITU-T I.371; exact here, with no floating point.
struct TokenBucket {
    std::uint64_t capacity = 0;  ///< tokens of a full bucket: the largest burst and the largest cost
    Rate refill{};               ///< tokens given back per period

    friend constexpr bool operator==(const TokenBucket&, const TokenBucket&) noexcept = default;

    class State;
    using BucketPlan = Plan<TokenBucket>;

    /// Takes `cost` if the bucket holds it. Pure: the state changes only if allowed and cost > 0.
    static constexpr Decision step(
        State& state, const BucketPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept;

    /// Gives `cost` back, up to full.
    static constexpr Decision refund(
        State& state, const BucketPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept;

    /// Takes `cost` even if the bucket does not hold it, into a debt of at most one capacity.
    static constexpr Decision charge(
        State& state, const BucketPlan& plan, Micros now, std::uint64_t cost, Micros phase) noexcept;

    /// Takes `cost` now, in advance if it is refilled within `max_wait` and the debt stays within one capacity.
    static constexpr Reservation reserve(State& state,
                                         const BucketPlan& plan,
                                         Micros now,
                                         std::uint64_t cost,
                                         Micros phase,
                                         std::chrono::microseconds max_wait) noexcept;

    /// When the bucket is full again under every plan it was used with, at the latest.
    [[nodiscard]] static constexpr Micros fresh_at(const State& state) noexcept;

    /// For how long what was taken can be given back: until the bucket is full again.
    [[nodiscard]] static constexpr std::chrono::microseconds refundable_for(const BucketPlan&,
                                                                            const Decision& decision) noexcept {
        return decision.reset_after;
    }

    /// The i-th of n equal parts, i below n: the capacities of all add up to this one's, the refill is an n-th each; or
    /// somewhat more where that would take longer than is allowed.
    [[nodiscard]] constexpr TokenBucket share(std::uint64_t i, std::uint64_t n) const noexcept;

    /// The steps in Lua, for storages that run scripts.
    struct Lua;

private:
    struct Level;
};

/// What is remembered of a client: the tokens *used*, so that it means the same under any plan. All zero is a full
/// bucket.
class TokenBucket::State {
public:
    constexpr State() = default;

    friend constexpr bool operator==(const State&, const State&) noexcept = default;

private:
    friend struct TokenBucket;

    // Three words: each holds one number in its low bits, and above it a piece of `used`, which has 41 bits.
    static constexpr unsigned stamp_bits = 53;
    static constexpr unsigned progress_bits = 45;
    static constexpr unsigned interval_bits = 46;
    static constexpr unsigned low_bits = 64 - stamp_bits;
    static constexpr unsigned middle_bits = 64 - progress_bits;
    static constexpr unsigned slowness_bits = 6;

    constexpr State(
        Micros stamp, std::uint64_t used, std::uint64_t progress, std::uint64_t interval, unsigned slowness) noexcept
        : stamp_(stamp | used << stamp_bits), progress_(progress | used >> low_bits << progress_bits),
          interval_(interval | std::uint64_t{slowness} << interval_bits |
                    used >> (low_bits + middle_bits) << (interval_bits + slowness_bits)) {}

    template <unsigned Bits>
    [[nodiscard]] static constexpr std::uint64_t low(std::uint64_t word) noexcept {
        return word & ((std::uint64_t{1} << Bits) - 1);
    }

    [[nodiscard]] constexpr Micros stamp() const noexcept { return low<stamp_bits>(stamp_); }
    [[nodiscard]] constexpr std::uint64_t progress() const noexcept { return low<progress_bits>(progress_); }
    [[nodiscard]] constexpr std::uint64_t interval() const noexcept { return low<interval_bits>(interval_); }
    [[nodiscard]] constexpr unsigned slowness() const noexcept {
        return static_cast<unsigned>(low<slowness_bits>(interval_ >> interval_bits));
    }
    [[nodiscard]] constexpr std::uint64_t used() const noexcept {
        return stamp_ >> stamp_bits | progress_ >> progress_bits << low_bits |
               interval_ >> (interval_bits + slowness_bits) << (low_bits + middle_bits);
    }

    std::uint64_t stamp_ = 0;
    std::uint64_t progress_ = 0;  // of the token being given back: progress / interval
    std::uint64_t interval_ = 0;  // and the slowness: a token takes at most 2^slowness us under any plan so far
};

static_assert(sizeof(TokenBucket::State) == 24);

/// A token bucket's parameters with the refill reduced to `tokens` per `interval`.
template <>
class Plan<TokenBucket> {
public:
    explicit constexpr Plan(const TokenBucket& bucket) : algorithm_(bucket) {
        detail::validate_limit("TokenBucket.capacity", bucket.capacity);
        if (bucket.refill.count < 1) {
            detail::throw_invalid("TokenBucket.refill.count", std::to_string(bucket.refill.count), "1 or more");
        }
        detail::validate_period("TokenBucket.refill.period", bucket.refill.period);
        const auto count = static_cast<std::uint64_t>(bucket.refill.count);
        const auto period = static_cast<std::uint64_t>(bucket.refill.period.count());
        if (count > most_per_microsecond * period) {
            detail::throw_invalid("TokenBucket.refill",
                                  std::to_string(count) + " per " + std::to_string(period) + " us",
                                  "at most 10000000 per second");
        }
        const std::uint64_t divisor = std::gcd(count, period);
        tokens_ = count / divisor;
        interval_ = period / divisor;
        const detail::Wide twice = detail::multiply(2 * bucket.capacity, interval_);
        const bool fits = twice.high < tokens_;
        const auto [time, rest] = fits ? detail::divide(twice, tokens_) : detail::Division{detail::end_of_time, 0};
        horizon_ = time + (rest > 0 ? 1 : 0);
        slowness_ = detail::exponent_of((interval_ + tokens_ - 1) / tokens_);
        payoff_ = detail::Payoff::of(bucket.capacity, slowness_);
        if (horizon_ >= detail::end_of_time) {
            detail::throw_invalid("TokenBucket.capacity",
                                  std::to_string(bucket.capacity) + " at a refill of " + std::to_string(count) +
                                      " per " + std::to_string(period) + " us",
                                  "what is refilled twice in less than 9007199254740992 us");
        }
    }

    [[nodiscard]] constexpr const TokenBucket& algorithm() const noexcept { return algorithm_; }

    /// The most that is admitted at once.
    [[nodiscard]] constexpr std::uint64_t limit() const noexcept { return algorithm_.capacity; }

    /// How long a full bucket's tokens take, as in detail::Payoff.
    [[nodiscard]] constexpr unsigned payoff() const noexcept { return payoff_; }

private:
    friend struct TokenBucket;

    static constexpr std::uint64_t most_per_microsecond = 10;

    TokenBucket algorithm_;
    std::uint64_t tokens_ = 0;
    std::uint64_t interval_ = 0;
    Micros horizon_ = 0;     // by then any debt is paid
    unsigned slowness_ = 0;  // a token takes at most 2^slowness us
    unsigned payoff_ = 0;
};

/// The bucket at a time: the state with what was refilled since the stamp.
struct TokenBucket::Level {
    Micros now;   // as asked
    Micros time;  // the same, but never before the stamp
    std::uint64_t used;
    std::uint64_t progress;
    unsigned slowness;

    constexpr Level(const State& state, const BucketPlan& plan, Micros at) noexcept
        : now(at), time((std::max)(at, state.stamp())), used(state.used()), progress(0),
          slowness((std::max)(plan.slowness_, state.slowness())) {
        if (const std::uint64_t most = 2 * plan.algorithm_.capacity; used > most) {
            used = most;
        }
        const Micros elapsed = time - state.stamp();
        if (elapsed >= plan.horizon_) {
            used = 0;
        }
        if (used == 0) {
            return;
        }
        progress = state.interval() == plan.interval_ ? state.progress() : 0;
        const auto [back, rest] = detail::multiply_add_divide(elapsed, plan.tokens_, progress, plan.interval_);
        used = back < used ? used - back : 0;
        progress = used == 0 ? 0 : rest;
    }

    [[nodiscard]] constexpr State state(const BucketPlan& plan) const noexcept {
        return {time, used, progress, plan.interval_, slowness};
    }

    /// From now until no more than `rest` tokens are used.
    [[nodiscard]] constexpr std::chrono::microseconds until(std::uint64_t rest, const BucketPlan& plan) const noexcept {
        if (used <= rest) {
            return std::chrono::microseconds{0};
        }
        return std::chrono::microseconds{static_cast<std::int64_t>(time - now + refill_time(used - rest, plan))};
    }

    /// ceil((missing x interval - progress) / tokens)
    [[nodiscard]] constexpr Micros refill_time(std::uint64_t missing, const BucketPlan& plan) const noexcept {
        if (plan.tokens_ == 1) {  // as most rates reduce to: no division, and it fits as the horizon does
            return missing * plan.interval_ - progress;
        }
        const std::uint64_t addend = (plan.interval_ - progress) + (plan.tokens_ - 1);
        return detail::multiply_add_divide(missing - 1, plan.interval_, addend, plan.tokens_).quotient;
    }

    [[nodiscard]] constexpr Decision decide(bool allowed,
                                            std::chrono::microseconds retry_after,
                                            const BucketPlan& plan) const noexcept {
        const std::uint64_t limit = plan.algorithm_.capacity;
        return {.allowed = allowed,
                .limit = limit,
                .remaining = used < limit ? limit - used : 0,
                .retry_after = retry_after,
                .reset_after = until(0, plan)};
    }

    [[nodiscard]] constexpr bool holds(std::uint64_t cost, const BucketPlan& plan) const noexcept {
        return cost <= plan.algorithm_.capacity && used <= plan.algorithm_.capacity - cost;
    }
};

PENSTOCK_INLINE constexpr Decision TokenBucket::step(
    State& state, const BucketPlan& plan, Micros now, std::uint64_t cost, Micros) noexcept {
    Level level(state, plan, now);
    const std::uint64_t capacity = plan.algorithm_.capacity;
    if (cost == 0) {
        return level.decide(true, {}, plan);
    }
    if (!level.holds(cost, plan)) {
        return level.decide(false, cost > capacity ? never : level.until(capacity - cost, plan), plan);
    }
    level.used += cost;
    state = level.state(plan);
    return level.decide(true, {}, plan);
}

constexpr Decision TokenBucket::refund(
    State& state, const BucketPlan& plan, Micros now, std::uint64_t cost, Micros) noexcept {
    Level level(state, plan, now);
    if (cost > 0 && level.used > 0) {
        level.used = cost < level.used ? level.used - cost : 0;
        level.progress = level.used == 0 ? 0 : level.progress;
        state = level.state(plan);
    }
    return level.decide(true, {}, plan);
}

constexpr Decision TokenBucket::charge(
    State& state, const BucketPlan& plan, Micros now, std::uint64_t cost, Micros) noexcept {
    Level level(state, plan, now);
    const std::uint64_t capacity = plan.algorithm_.capacity;
    if (cost > 0) {
        const std::uint64_t room = 2 * capacity - level.used;
        level.used += cost < room ? cost : room;
        state = level.state(plan);
    }
    return level.decide(level.used <= capacity, level.until(capacity, plan), plan);
}

constexpr Reservation TokenBucket::reserve(State& state,
                                           const BucketPlan& plan,
                                           Micros now,
                                           std::uint64_t cost,
                                           Micros phase,
                                           std::chrono::microseconds max_wait) noexcept {
    Level level(state, plan, now);
    const std::uint64_t capacity = plan.algorithm_.capacity;
    if (cost == 0 || cost > capacity || level.holds(cost, plan)) {
        return {step(state, plan, now, cost, phase)};
    }
    const std::chrono::microseconds wait = level.until(capacity - cost, plan);
    if (wait > max_wait || level.used > 2 * capacity - cost) {
        return {level.decide(false, wait, plan)};
    }
    level.used += cost;
    state = level.state(plan);
    return {level.decide(true, {}, plan), wait};
}

constexpr Micros TokenBucket::fresh_at(const State& state) noexcept {
    return state.stamp() + detail::shift_up(state.used(), state.slowness());
}

constexpr TokenBucket TokenBucket::share(std::uint64_t i, std::uint64_t n) const noexcept {
    const std::uint64_t part = detail::part_of(capacity, i, n);
    const auto count = static_cast<std::uint64_t>(refill.count);
    const auto period = static_cast<std::uint64_t>(refill.period.count());
    const std::uint64_t divisor = std::gcd(count, period);
    // What a Plan asks for: no longer than the longest period, and twice the capacity refilled before the end of time.
    const detail::Wide most = detail::multiply((detail::end_of_time - 1) / 2, count / divisor);
    const std::uint64_t refilled_in =
        part == 0 || most.high >= part ? ~std::uint64_t{0} : detail::divide(most, part).quotient;
    const std::uint64_t longest = (std::min)(refilled_in, static_cast<std::uint64_t>(detail::longest_period));
    const std::uint64_t interval = period / divisor;
    const std::uint64_t stretched = interval > longest / n ? longest : interval * n;
    return {
        part,
        {static_cast<std::int64_t>(count / divisor), std::chrono::microseconds{static_cast<std::int64_t>(stretched)}}};
}

struct TokenBucket::Lua {
    static constexpr detail::LuaTwin twin{
        .name = "bucket",
        .state = "slow@,stamp@,used@,part@,unit@",
        .narrow = "BI7I4I4I4",
        .wide = "BI7I6I6I6",
        .fits = "used@<4294967296 and unit@<4294967296",
        .foreign = "slow@>63",
        .plan = "limit@,tokens@,every@,pace@",
        .large = "limit@*every@>=4503599627370496",
        .advance = R"lua(
local gone@,lag@=now-stamp@,0
if gone@<0 then gone@,lag@=0,-gone@ else stamp@=now end
if slow@<pace@ then slow@=pace@ end
if used@>2*limit@ then used@=2*limit@ end
if unit@~=every@ then part@,unit@=0,every@ end
if used@>0 then
  local back=gone@*tokens@
  if not divide then
    back=back+part@
    if back<used@*every@ then
      part@=back%every@
      used@=used@-(back-part@)/every@
    else
      used@,part@=0,0
    end
  elseif back/every@<4398046511104 then
    local q,r=divide(gone@,tokens@,every@)
    r=r+part@
    if r>=every@ then q,r=q+1,r-every@ end
    if q<used@ then used@,part@=used@-q,r else used@,part@=0,0 end
  else
    used@,part@=0,0
  end
end
local ok@,lack@,retry@=true,0,0
)lua",
        .check = R"lua(
if cost>0 then
  if cost>limit@ then
    ok@,retry@=false,1/0
  elseif used@>limit@-cost then
    ok@,lack@=false,used@-limit@+cost
  else
    used@=used@+cost
  end
end
)lua",
        .refund = R"lua(
if used@>0 then
  did@=true
  if cost<used@ then used@=used@-cost else used@,part@=0,0 end
end
)lua",
        .charge = R"lua(
used@=used@+math.min(cost,2*limit@-used@)
if used@>limit@ then ok@,lack@=false,used@-limit@ end
)lua",
        .wait = R"lua(
if lack@>0 then
  if not divide then
    retry@=lack@*every@-part@
    local r=retry@%tokens@
    retry@=(retry@-r)/tokens@
    if r>0 then retry@=retry@+1 end
  else
    local q,d=divide(lack@,every@,tokens@)
    d=d-part@
    local r=d%tokens@
    retry@=q+(d-r)/tokens@
    if r>0 then retry@=retry@+1 end
  end
end
)lua",
        .patient = "retry@<=patience-lag@+more and used@<=2*limit@-cost",
        .take = "used@=used@+cost",
        .answer = R"lua(
local left@,reset@=0,0
if used@<limit@ then left@=limit@-used@ end
if used@>0 then
  if not divide then
    reset@=used@*every@-part@
    local r=reset@%tokens@
    reset@=(reset@-r)/tokens@
    if r>0 then reset@=reset@+1 end
  else
    local q,d=divide(used@,every@,tokens@)
    d=d-part@
    local r=d%tokens@
    reset@=q+(d-r)/tokens@
    if r>0 then reset@=reset@+1 end
  end
end
)lua",
        .fresh = "stamp@+used@*2^slow@",
    };

    /// The numbers of a plan, in the order of twin.plan.
    [[nodiscard]] static constexpr std::array<std::uint64_t, 4> numbers(const BucketPlan& plan, Micros) noexcept {
        return {plan.algorithm_.capacity, plan.tokens_, plan.interval_, plan.slowness_};
    }
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_ALGORITHM_TOKEN_BUCKET_HPP
