// SPDX-License-Identifier: MIT
// Lease: units of one client that are held in this process, and when to take more. Pure: no clock, no thread, no store.
#ifndef PENSTOCK_GUARD_LEASE_HPP
#define PENSTOCK_GUARD_LEASE_HPP

#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/plan.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

/// How leases are taken and given back.
struct LeasedOptions {
    /// Units that a client's lease in this process holds at most, with what it has asked for: 1 to 1,000,000. All
    /// gateways together admit at most gateways x size units more than the limit, in any window and over any span. 1
    /// leases nothing.
    std::uint64_t size = 10;

    /// Processes that share the limits: 1 to 1,000,000.
    std::uint64_t gateways = 1;

    /// Limits of which gateways x size is more than so many percent are checked one by one: 1 to 100.
    unsigned largest_share = 5;

    /// What a client leaves unused for so long is given back: 1 us to 1 hour.
    std::chrono::microseconds idle_return = std::chrono::seconds{1};

    /// For how long a rejection of the store is believed, at most, so what others give back is seen no later: 0 us to 1
    /// hour. A limit that gives a whole take again within 10 ms is not asked for less than that: it is seen so much
    /// later, and a client over such a limit is told to wait until then.
    std::chrono::microseconds max_age = std::chrono::seconds{1};

    /// Clients that are known here at once, at most, in each limiter: 64 to 2^26. The one that was idle longest makes
    /// place.
    std::uint64_t entries = 65'536;

    /// How long the destruction of a limiter waits, in all, while units are given back: 0 us (nothing is) to 1
    /// minute. A store that fails is not waited for.
    std::chrono::microseconds return_timeout = std::chrono::milliseconds{100};

    friend constexpr bool operator==(const LeasedOptions&, const LeasedOptions&) noexcept = default;
};

/// What a limiter's leases have come to.
struct LeasedStats {
    std::uint64_t taken = 0;     ///< units that the store admitted, what callers used at once among them
    std::uint64_t returned = 0;  ///< units given back to the store
    std::uint64_t dropped = 0;   ///< units that were neither used nor given back
    std::uint64_t served = 0;    ///< checks that were decided here, admitted or rejected
    std::uint64_t leases = 0;    ///< clients that are known here now
    std::uint64_t asks = 0;      ///< calls that asked the store for units, renewals among them
};

namespace detail {

/// Throws std::invalid_argument if an option is out of range.
inline void validate_leased(const LeasedOptions& options) {
    const auto demand = [](std::string_view field, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
        if (value < least || value > most) {
            throw_invalid("Leased." + std::string(field),
                          std::to_string(value),
                          std::to_string(least) + " to " + std::to_string(most));
        }
    };
    const auto demand_time =
        [](std::string_view field, std::chrono::microseconds time, std::int64_t least, std::chrono::microseconds most) {
            if (time.count() < least || time > most) {
                throw_invalid("Leased." + std::string(field),
                              std::to_string(time.count()) + " us",
                              std::to_string(least) + " us to " + std::to_string(most.count()) + " us");
            }
        };
    demand("size", options.size, 1, 1'000'000);
    demand("gateways", options.gateways, 1, 1'000'000);
    demand("largest_share", options.largest_share, 1, 100);
    demand("entries", options.entries, 64, std::uint64_t{1} << 26);
    demand_time("idle_return", options.idle_return, 1, std::chrono::hours{1});
    demand_time("max_age", options.max_age, 0, std::chrono::hours{1});
    demand_time("return_timeout", options.return_timeout, 0, std::chrono::minutes{1});
}

/// A plan that tells its limit, and can be told from others.
template <class AnyPlan>
concept Leasable = Limited<AnyPlan> && requires(const AnyPlan& plan) {
    requires std::same_as<decltype(plan.algorithm() == plan.algorithm()), bool>;
};

template <class AnyPlan>
[[nodiscard]] constexpr bool is_same_plan(const AnyPlan& a, const AnyPlan& b) noexcept {
    if constexpr (Leasable<AnyPlan>) {
        return a.algorithm() == b.algorithm();
    } else {
        return false;
    }
}

/// Whether a plan's limit is large enough for leases.
template <class AnyPlan>
[[nodiscard]] constexpr bool is_leased(const AnyPlan& plan, const LeasedOptions& options) noexcept {
    if constexpr (Leasable<AnyPlan>) {
        return options.gateways * options.size * 100 <= plan.limit() * options.largest_share;
    } else {
        return false;
    }
}

/// For how long after a decision what was taken can be given back exactly; 0 if the algorithm does not tell.
template <class Algorithm>
[[nodiscard]] constexpr std::chrono::microseconds refundable_for(const Plan<Algorithm>& plan,
                                                                 const Decision& decision) noexcept {
    if constexpr (Refundable<Algorithm> && requires { Algorithm::refundable_for(plan, decision); }) {
        return Algorithm::refundable_for(plan, decision);
    } else {
        return std::chrono::microseconds{0};
    }
}

/// A time after another; `never` stays far beyond the end of time.
[[nodiscard]] constexpr Micros time_after(Micros begin, std::chrono::microseconds wait) noexcept {
    return begin + static_cast<Micros>(wait.count());
}

/// How long it is until then, at least 0.
[[nodiscard]] constexpr std::chrono::microseconds time_until(Micros end, Micros now) noexcept {
    if (end >= static_cast<Micros>(never.count())) {
        return never;
    }
    return std::chrono::microseconds{static_cast<std::int64_t>(end > now ? end - now : 0)};
}

/// What the store is asked for: a caller's cost with what its lease takes beside it, or, at cost 0, a renewal.
struct LeaseAsk {
    std::uint64_t number = 0;  // of the lease
    std::uint64_t cost = 0;
    std::uint64_t amount = 0;
    Micros sent = 0;
    bool takes = false;                        // the one for its lease that may take more than the cost
    unsigned tries = 1;                        // how often the store is asked
    std::chrono::microseconds refill = never;  // until it has what was asked for first, by its answer

    /// What the lease gets if it is admitted.
    [[nodiscard]] constexpr std::uint64_t surplus() const noexcept { return amount - cost; }

    [[nodiscard]] constexpr bool can_shrink(const Decision& decision) const noexcept {
        return !decision.allowed && cost > 0 && amount > cost;
    }

    /// Whether to ask once more, for less: what the store still has, or the cost alone, so that the wait that it tells
    /// is the caller's.
    [[nodiscard]] constexpr bool shrink(const Decision& decision) noexcept {
        if (!can_shrink(decision)) {
            return false;
        }
        refill = tries == 1 ? decision.retry_after : refill;
        amount = tries > 1 ? cost : (std::clamp)(decision.remaining, cost, amount);
        ++tries;
        return true;
    }
};

/// What is held of one client under one plan. A lease begins with what a check costs; each time it is used up the next
/// take is twice as large, up to the size. Times are local; one that goes back stands still. Not thread-safe. All O(1).
class Lease {
public:
    /// A lease of windows ends when the store has given all back; where units come back one by one, without windows, it
    /// lasts as long as it is used.
    explicit Lease(bool of_windows = true) noexcept : of_windows_(of_windows) {}

    [[nodiscard]] std::uint64_t left() const noexcept { return left_; }

    /// Whether it waits for the answer to an ask that takes.
    [[nodiscard]] bool is_waiting() const noexcept { return asked_ > 0; }

    /// Whether what is left can be given back exactly.
    [[nodiscard]] bool is_refundable(Micros now) const noexcept { return now < refundable_until_; }

    /// Whether the store has given back by itself what is left.
    [[nodiscard]] bool has_ended(Micros now) const noexcept { return now >= ends_; }

    /// Decides a check, if what is known here is enough.
    [[nodiscard]] bool decide(std::uint64_t cost, Micros now, Decision& decision) noexcept {
        if (cost <= left_ && !has_ended(now)) [[likely]] {
            left_ -= cost;
            used_ += cost;
            tell(decision, true, std::chrono::microseconds{0}, now);
            return true;
        }
        if (cost > 0 && is_refused(cost, now)) {
            tell(decision, false, time_until(retry_at_, now), now);
            return true;
        }
        return false;
    }

    /// What to ask the store for on behalf of a caller.
    [[nodiscard]] LeaseAsk ask(std::uint64_t cost, Micros now, std::uint64_t size) noexcept {
        LeaseAsk ask{.cost = cost, .amount = cost, .sent = now};
        if (asked_ == 0 && cost > 0 && cost <= size) {
            ask.amount = (std::max)(cost, (std::min)(next_, size - left_));
            ask.takes = true;
            asked_ = ask.amount;
        }
        return ask;
    }

    /// What to ask for so that the next caller finds something; an amount of 0: nothing.
    [[nodiscard]] LeaseAsk renewal(Micros now, std::uint64_t size) noexcept {
        LeaseAsk ask{.sent = now};
        if (left_ <= renew_at_ && renewable_ && asked_ == 0 && left_ < size) {
            ask.amount = (std::min)(next_, size - left_);
            ask.takes = true;
            asked_ = ask.amount;
        }
        return ask;
    }

    /// The store has answered.
    void answered(const LeaseAsk& ask,
                  const Decision& decision,
                  std::chrono::microseconds refundable,
                  std::uint64_t size) noexcept {
        asked_ = ask.takes ? 0 : asked_;
        if (decision.allowed) {
            admitted(ask, decision, refundable, size);
        } else {
            know(ask.sent, decision);
            // A caller who finds nothing left asks for what it needs.
            renewable_ = false;
            next_ = is_soon(ask.tries > 1 ? ask.refill : decision.retry_after) ? next_ : 1;
        }
    }

    /// For so much, by the store's last answer, of which the wait may become longer. It is believed for a while.
    void refused(const LeaseAsk& ask, Decision& decision, std::chrono::microseconds max_age) noexcept {
        if (is_soon(ask.refill)) {
            decision.retry_after = (std::max)(decision.retry_after, ask.refill);
        }
        if (!is_refused(ask.cost, ask.sent)) {
            refuse(ask.cost, ask.sent, decision.retry_after, max_age);
        }
    }

    /// The store has not answered: only a caller who finds nothing left asks again.
    void failed(const LeaseAsk& ask) noexcept {
        asked_ = ask.takes ? 0 : asked_;
        renewable_ = false;
        next_ = 1;
    }

    /// What was rejected may pass now.
    void forget_refusal() noexcept { refused_until_ = 0; }

    /// Its client has gone for a while: it begins anew with as much as it used.
    void rest(std::uint64_t size) noexcept {
        next_ = (std::clamp)(used_, std::uint64_t{1}, size);
        used_ = 0;
    }

    /// Gives up what is left.
    [[nodiscard]] std::uint64_t release() noexcept {
        ends_ = 0;
        return std::exchange(left_, 0);
    }

private:
    /// Whether the store gives a whole take again in no time: who comes back for each unit would have it asked for
    /// each, and so nobody asks before all of them are there.
    [[nodiscard]] static constexpr bool is_soon(std::chrono::microseconds refill) noexcept {
        return refill <= std::chrono::milliseconds{10};
    }

    [[nodiscard]] bool is_refused(std::uint64_t cost, Micros now) const noexcept {
        return now < refused_until_ && now >= refused_at_ && cost == refused_;
    }

    void admitted(const LeaseAsk& ask,
                  const Decision& decision,
                  std::chrono::microseconds refundable,
                  std::uint64_t size) noexcept {
        used_ += ask.cost;
        if (!ask.takes) {
            return;  // others may have been refused since it was sent
        }
        refused_until_ = ask.amount >= refused_ ? 0 : refused_until_;
        left_ += ask.surplus();
        know(ask.sent, decision);
        if (is_soon(ask.refill)) {
            refuse(1, ask.sent, ask.refill, ask.refill);
        }
        ends_ = of_windows_ ? reset_at_ : time_after(ask.sent, never);
        refundable_until_ = time_after(ask.sent, refundable);
        renew_at_ = (std::max)(ask.amount / 8, std::uint64_t{1});
        renewable_ = size > 1;
        next_ = (std::min)(2 * ask.amount, size);
    }

    void refuse(std::uint64_t cost,
                Micros sent,
                std::chrono::microseconds wait,
                std::chrono::microseconds max_age) noexcept {
        refused_ = cost;
        refused_at_ = sent;
        retry_at_ = time_after(sent, wait);
        refused_until_ = (std::min)(retry_at_, time_after(sent, max_age));
    }

    void know(Micros sent, const Decision& decision) noexcept {
        limit_ = decision.limit;
        remaining_ = decision.remaining;
        reset_at_ = time_after(sent, decision.reset_after);
    }

    void tell(Decision& decision, bool allowed, std::chrono::microseconds retry_after, Micros now) const noexcept {
        decision.allowed = allowed;
        decision.limit = limit_;
        decision.remaining = (std::min)(limit_, remaining_ + left_);
        decision.retry_after = retry_after;
        decision.reset_after = time_until(reset_at_, now);
        decision.source = Source::lease;
    }

    bool of_windows_;
    std::uint64_t left_ = 0;
    std::uint64_t used_ = 0;   // since its client was gone for a while
    std::uint64_t asked_ = 0;  // under way
    std::uint64_t next_ = 1;   // the next take
    std::uint64_t renew_at_ = 0;
    bool renewable_ = false;
    Micros ends_ = 0;
    Micros refundable_until_ = 0;

    // What the store said last.
    std::uint64_t limit_ = 0;
    std::uint64_t remaining_ = 0;
    Micros reset_at_ = 0;

    // The cost that it rejected last: what is told for it holds for no other.
    std::uint64_t refused_ = 0;
    Micros refused_at_ = 0;
    Micros retry_at_ = 0;
    Micros refused_until_ = 0;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_LEASE_HPP
