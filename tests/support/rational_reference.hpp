// SPDX-License-Identifier: MIT
// The algorithms once more, in fractions of arbitrary precision and straight from the contract's words: what the
// library is compared with. Shares no code with it.
#ifndef PENSTOCK_TESTS_SUPPORT_RATIONAL_REFERENCE_HPP
#define PENSTOCK_TESTS_SUPPORT_RATIONAL_REFERENCE_HPP

#include <boost/multiprecision/cpp_int.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <tuple>
#include <utility>

namespace reference {

namespace multiprecision = boost::multiprecision;
using Integer = multiprecision::number<multiprecision::cpp_int_backend<>, multiprecision::et_off>;

inline constexpr std::int64_t never = (std::numeric_limits<std::int64_t>::max)();

struct Decision {
    bool allowed = false;
    std::uint64_t limit = 0;
    std::uint64_t remaining = 0;
    std::int64_t retry_after = 0;
    std::int64_t reset_after = 0;

    friend bool operator==(const Decision&, const Decision&) = default;
};

struct Reservation {
    Decision decision;
    std::int64_t wait = 0;

    friend bool operator==(const Reservation&, const Reservation&) = default;
};

inline Integer floor_of(const Integer& numerator, const Integer& denominator) {
    const Integer towards_zero = numerator / denominator;
    return numerator < 0 && towards_zero * denominator != numerator ? Integer(towards_zero - 1) : towards_zero;
}

inline Integer ceil_of(const Integer& numerator, const Integer& denominator) {
    return -floor_of(-numerator, denominator);
}

inline Integer at_least_zero(const Integer& value) {
    return value < 0 ? Integer(0) : value;
}

inline const Integer& later(const Integer& a, const Integer& b) {
    return a < b ? b : a;
}

/// numerator / denominator, not reduced: equal only if both numbers are.
struct Fraction {
    Integer numerator = 0;
    Integer denominator = 1;

    friend bool operator==(const Fraction&, const Fraction&) = default;
};

/// A level that falls by `refill` units a microsecond while nobody takes, full when nothing is used.
class TokenBucket {
public:
    /// `used` is exact: whole units less what has been given back of one of them.
    struct State {
        Fraction used;
        Integer stamp = 0;

        friend bool operator==(const State&, const State&) = default;
    };

    struct Present {
        Fraction used;
        Integer time;
    };

    TokenBucket(std::uint64_t capacity, std::uint64_t refill_count, std::int64_t refill_period) : capacity_(capacity) {
        const Integer common = gcd(Integer{refill_count}, Integer{refill_period});
        refill_numerator_ = refill_count / common;
        refill_denominator_ = refill_period / common;
    }

    const Integer& limit() const { return capacity_; }

    Present at(const State& state, const Integer& now, const Integer& /*phase*/) const {
        const Integer time = later(now, state.stamp);
        Integer used = numerator_over_own_denominator(state.used);
        used -= at_least_zero(whole_units(used) - 2 * capacity_) * refill_denominator_;
        used -= (time - state.stamp) * refill_numerator_;
        return {{at_least_zero(used), refill_denominator_}, time};
    }

    bool fits(const Present& present, const Integer& cost) const { return excess_with(present, cost) <= 0; }

    Integer first_fit(const Present& present, const Integer& cost) const {
        return present.time + ceil_of(excess_with(present, cost), refill_numerator_);
    }

    Integer remaining(const Present& present) const { return capacity_ - whole_units(present.used.numerator); }

    bool is_full(const Present& present) const { return present.used.numerator == 0; }

    Integer full_at(const Present& present) const {
        return present.time + ceil_of(present.used.numerator, refill_numerator_);
    }

    State taken(const Present& present, const Integer& cost) const {
        return {{present.used.numerator + cost * refill_denominator_, refill_denominator_}, present.time};
    }

    State charged(const Present& present, const Integer& cost) const {
        State state = taken(present, cost);
        state.used.numerator -= at_least_zero(whole_units(state.used.numerator) - 2 * capacity_) * refill_denominator_;
        return state;
    }

    bool can_give_back(const Present& present) const { return present.used.numerator > 0; }

    State given_back(const Present& present, const Integer& cost) const {
        const Integer used = present.used.numerator - cost * refill_denominator_;
        return {{at_least_zero(used), refill_denominator_}, present.time};
    }

    bool can_owe(const Present& present, const Integer& cost) const {
        return whole_units(present.used.numerator) + cost <= 2 * capacity_;
    }

private:
    /// What was given back of a unit under another denominator is dropped: the unit counts as used.
    Integer numerator_over_own_denominator(const Fraction& used) const {
        if (used.denominator == refill_denominator_) {
            return used.numerator;
        }
        return ceil_of(used.numerator, used.denominator) * refill_denominator_;
    }

    Integer whole_units(const Integer& numerator) const { return ceil_of(numerator, refill_denominator_); }

    Integer excess_with(const Present& present, const Integer& cost) const {
        return present.used.numerator + (cost - capacity_) * refill_denominator_;
    }

    Integer capacity_;
    Integer refill_numerator_;
    Integer refill_denominator_;
};

/// Where windows begin: at every `window` since the epoch, shifted.
class Grid {
public:
    Grid(Integer window, Integer shift) : window_(std::move(window)), shift_(std::move(shift)) {}

    Integer start_of(const Integer& time) const { return floor_of(time - shift_, window_) * window_ + shift_; }

private:
    Integer window_;
    Integer shift_;
};

/// The counters of the two window algorithms. A length of 0 is a client never seen.
struct WindowState {
    Integer stamp = 0;
    Integer previous = 0;
    Integer current = 0;
    Integer length = 0;

    friend bool operator==(const WindowState&, const WindowState&) = default;
};

struct WindowPresent {
    WindowState counts;
    Integer time;
    Integer start;
};

/// Twice the largest limit: what debts carried over to windows of other lengths can add up to.
inline const Integer most_counted = Integer(1) << 40;

struct WindowShape {
    Integer window;
    bool staggered = false;
    Integer offset = 0;

    Grid grid(const Integer& length, const Integer& phase) const {
        return Grid(length, staggered ? Integer(offset + phase) : offset);
    }

    /// The counts as they were at the stamp, of the window that `grid(window)` has there.
    WindowState counts_in_own_length(WindowState state, const Integer& phase) const {
        if (state.length != 0 && state.length != window) {
            const Integer elapsed = state.stamp - grid(state.length, phase).start_of(state.stamp);
            state.current += ceil_of(state.previous * (state.length - elapsed), state.length);
            state.current = std::min(state.current, most_counted);
            state.previous = 0;
        }
        state.length = window;
        return state;
    }

    WindowPresent at(const WindowState& state, const Integer& now, const Integer& phase) const {
        const Grid own = grid(window, phase);
        WindowState counts = counts_in_own_length(state, phase);
        const Integer time = later(now, counts.stamp);
        const Integer start = own.start_of(time);
        const Integer windows_since = (start - own.start_of(counts.stamp)) / window;
        if (windows_since > 0) {
            counts.previous = windows_since == 1 ? counts.current : Integer(0);
            counts.current = 0;
        }
        return {counts, time, start};
    }
};

inline WindowState with_current(const WindowPresent& present, const Integer& current) {
    WindowState state = present.counts;
    state.current = current;
    return state;
}

inline WindowState with_more(const WindowPresent& present, const Integer& cost) {
    WindowState state = with_current(present, present.counts.current + cost);
    state.stamp = present.time;
    return state;
}

/// What the two window algorithms have in common.
class WindowAlgorithm {
public:
    using State = WindowState;
    using Present = WindowPresent;

    const Integer& limit() const { return limit_; }

    bool can_give_back(const Present& present) const { return present.counts.current > 0; }

    /// Only of the current window, and it is no use of the client: the stamp stays.
    State given_back(const Present& present, const Integer& cost) const {
        return with_current(present, at_least_zero(present.counts.current - cost));
    }

protected:
    WindowAlgorithm(std::uint64_t limit, std::int64_t window, bool staggered, std::int64_t offset)
        : limit_(limit), shape_{window, staggered, offset} {}
    ~WindowAlgorithm() = default;
    WindowAlgorithm(const WindowAlgorithm&) = default;
    WindowAlgorithm& operator=(const WindowAlgorithm&) = default;

    Integer end_of(const Present& present) const { return present.start + shape_.window; }

    /// As much of the cost as keeps the debt within one full limit.
    Integer chargeable(const Integer& weighted_use, const Integer& cost) const {
        const Integer room = at_least_zero(2 * limit_ - weighted_use);
        return cost < room ? cost : room;
    }

    Integer limit_;
    WindowShape shape_;
};

class SlidingWindow : public WindowAlgorithm {
public:
    SlidingWindow(std::uint64_t limit, std::int64_t window, bool staggered)
        : WindowAlgorithm(limit, window, staggered, 0) {}

    Present at(const State& state, const Integer& now, const Integer& phase) const {
        return shape_.at(state, now, phase);
    }

    bool fits(const Present& present, const Integer& cost) const {
        const Integer& window = shape_.window;
        return previous_weight(present) + (present.counts.current + cost) * window <= limit_ * window;
    }

    /// Called when the cost does not fit now, and would in an empty window.
    Integer first_fit(const Present& present, const Integer& cost) const {
        const Integer end = end_of(present);
        const Integer room_now = limit_ - present.counts.current - cost;
        if (room_now >= 0 && present.counts.previous > 0) {
            Integer time = first_weighted_at_most(present.counts.previous, room_now, present.start);
            if (time < end) {
                return time;
            }
        }
        return first_weighted_at_most(present.counts.current, limit_ - cost, end);
    }

    Integer remaining(const Present& present) const { return limit_ - weighted_use(present); }

    bool is_full(const Present& present) const { return present.counts.current == 0 && present.counts.previous == 0; }

    Integer full_at(const Present& present) const {
        return present.counts.current > 0 ? Integer(end_of(present) + shape_.window) : end_of(present);
    }

    State taken(const Present& present, const Integer& cost) const { return with_more(present, cost); }

    State charged(const Present& present, const Integer& cost) const {
        return with_more(present, chargeable(weighted_use(present), cost));
    }

private:
    /// previous x (w - e), that is, its weight times the window.
    Integer previous_weight(const Present& present) const {
        return present.counts.previous * (end_of(present) - present.time);
    }

    Integer weighted_use(const Present& present) const {
        return present.counts.current + ceil_of(previous_weight(present), shape_.window);
    }

    /// The first time from `start` when `count`, made in the window before `start`, weighs `room` or less:
    /// count x (w - e) <= room x w.
    Integer first_weighted_at_most(const Integer& count, const Integer& room, const Integer& start) const {
        if (count <= room) {
            return start;
        }
        return start + ceil_of((count - room) * shape_.window, count);
    }
};

class FixedWindow : public WindowAlgorithm {
public:
    FixedWindow(std::uint64_t limit, std::int64_t window, bool staggered, std::int64_t offset)
        : WindowAlgorithm(limit, window, staggered, offset) {}

    Present at(const State& state, const Integer& now, const Integer& phase) const {
        Present present = shape_.at(state, now, phase);
        present.counts.previous = 0;
        return present;
    }

    bool fits(const Present& present, const Integer& cost) const { return present.counts.current + cost <= limit_; }

    Integer first_fit(const Present& present, const Integer& /*cost*/) const { return end_of(present); }

    Integer remaining(const Present& present) const { return limit_ - present.counts.current; }

    bool is_full(const Present& present) const { return present.counts.current == 0; }

    Integer full_at(const Present& present) const { return end_of(present); }

    State taken(const Present& present, const Integer& cost) const { return with_more(present, cost); }

    State charged(const Present& present, const Integer& cost) const {
        return with_more(present, chargeable(present.counts.current, cost));
    }
};

template <class... Parts>
class AllOf {
public:
    using State = std::tuple<typename Parts::State...>;
    static constexpr std::size_t size = sizeof...(Parts);

    explicit AllOf(Parts... parts) : parts_(std::move(parts)...) {}

    /// `function(part, its state)` for each part in order; what it returns, as an array.
    template <class Function>
    auto each(State& state, Function function) const {
        return each(state, function, std::index_sequence_for<Parts...>{});
    }

private:
    template <class Function, std::size_t... I>
    auto each(State& state, Function& function, std::index_sequence<I...>) const {
        return std::array{function(std::get<I>(parts_), std::get<I>(state))...};
    }

    std::tuple<Parts...> parts_;
};

// One algorithm: a moment is described, then the five operations.

template <class Algorithm>
Decision describe(const Algorithm& algorithm, const typename Algorithm::Present& present, const Integer& now) {
    Decision decision;
    decision.limit = static_cast<std::uint64_t>(algorithm.limit());
    decision.remaining = static_cast<std::uint64_t>(at_least_zero(algorithm.remaining(present)));
    if (!algorithm.is_full(present)) {
        decision.reset_after = static_cast<std::int64_t>(algorithm.full_at(present) - now);
    }
    return decision;
}

template <class Algorithm>
Decision allowed(const Algorithm& algorithm, const typename Algorithm::Present& present, const Integer& now) {
    Decision decision = describe(algorithm, present, now);
    decision.allowed = true;
    return decision;
}

template <class Algorithm>
Decision rejected(const Algorithm& algorithm,
                  const typename Algorithm::Present& present,
                  const Integer& now,
                  const Integer& cost) {
    Decision decision = describe(algorithm, present, now);
    decision.retry_after =
        cost > algorithm.limit() ? never : static_cast<std::int64_t>(algorithm.first_fit(present, cost) - now);
    return decision;
}

template <class Algorithm>
Decision check(const Algorithm& algorithm,
               typename Algorithm::State& state,
               const Integer& now,
               const Integer& cost,
               const Integer& phase) {
    const auto present = algorithm.at(state, now, phase);
    if (cost == 0) {
        return allowed(algorithm, present, now);
    }
    if (!algorithm.fits(present, cost)) {
        return rejected(algorithm, present, now, cost);
    }
    state = algorithm.taken(present, cost);
    return allowed(algorithm, algorithm.at(state, now, phase), now);
}

template <class Algorithm>
Decision peek(const Algorithm& algorithm,
              const typename Algorithm::State& state,
              const Integer& now,
              const Integer& cost,
              const Integer& phase) {
    auto copy = state;
    return check(algorithm, copy, now, cost, phase);
}

template <class Algorithm>
Decision refund(const Algorithm& algorithm,
                typename Algorithm::State& state,
                const Integer& now,
                const Integer& cost,
                const Integer& phase) {
    const auto present = algorithm.at(state, now, phase);
    if (cost > 0 && algorithm.can_give_back(present)) {
        state = algorithm.given_back(present, cost);
    }
    return allowed(algorithm, algorithm.at(state, now, phase), now);
}

template <class Algorithm>
Decision charge(const Algorithm& algorithm,
                typename Algorithm::State& state,
                const Integer& now,
                const Integer& cost,
                const Integer& phase) {
    if (cost > 0) {
        state = algorithm.charged(algorithm.at(state, now, phase), cost);
    }
    const auto present = algorithm.at(state, now, phase);
    return algorithm.fits(present, 0) ? allowed(algorithm, present, now) : rejected(algorithm, present, now, 0);
}

inline Reservation reserve(const TokenBucket& bucket,
                           TokenBucket::State& state,
                           const Integer& now,
                           const Integer& cost,
                           const Integer& phase,
                           std::int64_t max_wait) {
    const auto present = bucket.at(state, now, phase);
    if (cost == 0 || cost > bucket.limit() || bucket.fits(present, cost)) {
        return {check(bucket, state, now, cost, phase), 0};
    }
    const Integer wait = bucket.first_fit(present, cost) - now;
    if (wait > max_wait || !bucket.can_owe(present, cost)) {
        return {rejected(bucket, present, now, cost), 0};
    }
    state = bucket.taken(present, cost);
    return {allowed(bucket, bucket.at(state, now, phase), now), static_cast<std::int64_t>(wait)};
}

// Several at once.

/// The rejecting part with the longest wait, or the one with the least left; the first of equals.
template <std::size_t Size>
const Decision& reported(const std::array<Decision, Size>& parts, bool all_allow) {
    const Decision* best = nullptr;
    for (const Decision& part : parts) {
        if (!all_allow && part.allowed) {
            continue;
        }
        if (best == nullptr || (all_allow ? part.remaining < best->remaining : part.retry_after > best->retry_after)) {
            best = &part;
        }
    }
    return *best;
}

template <std::size_t Size>
bool all_allow(const std::array<Decision, Size>& parts) {
    for (const Decision& part : parts) {
        if (!part.allowed) {
            return false;
        }
    }
    return true;
}

template <std::size_t Size>
Decision combine(const std::array<Decision, Size>& parts) {
    Decision decision = reported(parts, all_allow(parts));
    for (const Decision& part : parts) {
        decision.remaining = part.remaining < decision.remaining ? part.remaining : decision.remaining;
    }
    return decision;
}

template <class... Parts>
Decision check(const AllOf<Parts...>& all,
               typename AllOf<Parts...>::State& state,
               const Integer& now,
               const Integer& cost,
               const Integer& phase) {
    auto after = state;
    auto parts = all.each(after, [&](const auto& part, auto& own) { return check(part, own, now, cost, phase); });
    if (all_allow(parts)) {
        state = after;
        return combine(parts);
    }
    const auto untouched =
        all.each(state, [&](const auto& part, const auto& own) { return peek(part, own, now, 0, phase); });
    for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i].remaining = untouched[i].remaining;
    }
    return combine(parts);
}

template <class... Parts>
Decision peek(const AllOf<Parts...>& all,
              const typename AllOf<Parts...>::State& state,
              const Integer& now,
              const Integer& cost,
              const Integer& phase) {
    auto copy = state;
    return check(all, copy, now, cost, phase);
}

template <class... Parts>
Decision refund(const AllOf<Parts...>& all,
                typename AllOf<Parts...>::State& state,
                const Integer& now,
                const Integer& cost,
                const Integer& phase) {
    return combine(all.each(state, [&](const auto& part, auto& own) { return refund(part, own, now, cost, phase); }));
}

template <class... Parts>
Decision charge(const AllOf<Parts...>& all,
                typename AllOf<Parts...>::State& state,
                const Integer& now,
                const Integer& cost,
                const Integer& phase) {
    return combine(all.each(state, [&](const auto& part, auto& own) { return charge(part, own, now, cost, phase); }));
}

template <class... Parts>
Reservation reserve(const AllOf<Parts...>& all,
                    typename AllOf<Parts...>::State& state,
                    const Integer& now,
                    const Integer& cost,
                    const Integer& phase,
                    std::int64_t max_wait) {
    auto after = state;
    const auto parts =
        all.each(after, [&](const auto& part, auto& own) { return reserve(part, own, now, cost, phase, max_wait); });
    std::array<Decision, AllOf<Parts...>::size> decisions;
    Reservation reservation;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        decisions[i] = parts[i].decision;
        reservation.wait = parts[i].wait > reservation.wait ? parts[i].wait : reservation.wait;
    }
    if (!all_allow(decisions)) {
        return {peek(all, state, now, cost, phase), 0};
    }
    state = after;
    reservation.decision = combine(decisions);
    return reservation;
}

inline std::ostream& operator<<(std::ostream& out, const TokenBucket::State& state) {
    return out << "{used " << state.used.numerator << '/' << state.used.denominator << ", stamp " << state.stamp << '}';
}

inline std::ostream& operator<<(std::ostream& out, const WindowState& state) {
    return out << "{previous " << state.previous << ", current " << state.current << ", length " << state.length
               << ", stamp " << state.stamp << '}';
}

template <class... States>
std::ostream& print_state(std::ostream& out, const std::tuple<States...>& states) {
    std::apply([&](const auto&... state) { ((out << state << ' '), ...); }, states);
    return out;
}

template <class State>
std::ostream& print_state(std::ostream& out, const State& state) {
    return out << state;
}

inline std::ostream& operator<<(std::ostream& out, const Decision& decision) {
    out << (decision.allowed ? "allowed" : "rejected") << ", limit " << decision.limit << ", remaining "
        << decision.remaining << ", retry_after ";
    if (decision.retry_after == never) {
        out << "never";
    } else {
        out << decision.retry_after << " us";
    }
    return out << ", reset_after " << decision.reset_after << " us";
}

inline std::ostream& operator<<(std::ostream& out, const Reservation& reservation) {
    return out << '{' << reservation.decision << "}, wait " << reservation.wait << " us";
}

}  // namespace reference

#endif  // PENSTOCK_TESTS_SUPPORT_RATIONAL_REFERENCE_HPP
