// SPDX-License-Identifier: MIT
// Windows of one length on a grid, and the counts of the last two: what FixedWindow and SlidingWindow share.
#ifndef PENSTOCK_DETAIL_WINDOW_HPP
#define PENSTOCK_DETAIL_WINDOW_HPP

#include <penstock/config.hpp>
#include <penstock/detail/wide.hpp>
#include <penstock/plan.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Where the windows of a length begin: at its multiples since the epoch, shifted.
struct WindowGrid {
    std::uint64_t length;  // microseconds
    std::uint64_t shift;   // below length

    constexpr WindowGrid(std::uint64_t window, std::int64_t any_shift) noexcept
        : length(window), shift(reduce(any_shift, static_cast<std::int64_t>(window))) {}

    /// How much of its window has passed at a time.
    [[nodiscard]] constexpr std::uint64_t elapsed(Micros time) const noexcept {
        return (time + (length - shift)) % length;
    }

private:
    [[nodiscard]] static constexpr std::uint64_t reduce(std::int64_t shift, std::int64_t length) noexcept {
        if (shift == 0) {
            return 0;  // the common case, without a division
        }
        const std::int64_t rest = shift % length;
        return static_cast<std::uint64_t>(rest < 0 ? rest + length : rest);
    }
};

struct Counts;

/// How long a plan's windows are, and how long a unit takes at its average rate: exponents, rounded up.
struct WindowSlowness {
    unsigned window = 0;  // a window takes at most 2^window us
    unsigned unit = 0;    // a unit takes at most 4^unit us

    constexpr WindowSlowness() = default;
    constexpr WindowSlowness(std::uint64_t length, std::uint64_t limit) noexcept
        : window(exponent_of(length)), unit((exponent_of((length + limit - 1) / limit) + 1) / 2) {}

    [[nodiscard]] constexpr unsigned payoff_of(std::uint64_t units) const noexcept {
        return Payoff::of(units, 2 * unit);
    }

    constexpr void raise_to(const WindowSlowness& other) noexcept {
        window = (std::max)(window, other.window);
        unit = (std::max)(unit, other.unit);
    }
};

/// What is remembered of a client: when it was last admitted, and what it took in that window and the one before. All
/// zero is a client that took nothing.
class WindowState {
public:
    constexpr WindowState() = default;

    friend constexpr bool operator==(const WindowState&, const WindowState&) noexcept = default;

private:
    friend struct Counts;

    // Counts have 41 bits: at most twice the largest limit. `previous` stands in two pieces above the others, the
    // slowness of the slowest plans above the stamp.
    static constexpr unsigned stamp_bits = 53;
    static constexpr unsigned current_bits = 41;
    static constexpr unsigned length_bits = 46;
    static constexpr unsigned low_bits = 64 - current_bits;
    static constexpr unsigned window_bits = 6;

    constexpr WindowState(Micros stamp,
                          std::uint64_t previous,
                          std::uint64_t current,
                          std::uint64_t length,
                          WindowSlowness slowness) noexcept
        : stamp_(stamp | std::uint64_t{slowness.window} << stamp_bits |
                 std::uint64_t{slowness.unit} << (stamp_bits + window_bits)),
          current_(current | previous << current_bits), length_(length | previous >> low_bits << length_bits) {}

    [[nodiscard]] constexpr Micros stamp() const noexcept { return stamp_ & ((std::uint64_t{1} << stamp_bits) - 1); }
    [[nodiscard]] constexpr WindowSlowness slowness() const noexcept {
        WindowSlowness slowness;
        slowness.window = static_cast<unsigned>(stamp_ >> stamp_bits & ((1U << window_bits) - 1));
        slowness.unit = static_cast<unsigned>(stamp_ >> (stamp_bits + window_bits));
        return slowness;
    }
    [[nodiscard]] constexpr std::uint64_t current() const noexcept {
        return current_ & ((std::uint64_t{1} << current_bits) - 1);
    }
    [[nodiscard]] constexpr std::uint64_t length() const noexcept {
        return length_ & ((std::uint64_t{1} << length_bits) - 1);
    }
    [[nodiscard]] constexpr std::uint64_t previous() const noexcept {
        return current_ >> current_bits | length_ >> length_bits << low_bits;
    }

    std::uint64_t stamp_ = 0;
    std::uint64_t current_ = 0;
    std::uint64_t length_ = 0;  // 0: nothing taken yet
};

static_assert(sizeof(WindowState) == 24);

/// The counts of the window at a time and of the one before it.
struct Counts {
    Micros now;             // as asked
    Micros time;            // the same, but never before the stamp
    std::uint64_t elapsed;  // of the window at `time`
    std::uint64_t length;
    std::uint64_t previous;
    std::uint64_t current;
    WindowSlowness before;  // of the plans so far

    /// `shift` moves the grid of any length: the counts of a state under another plan's length are taken on that
    /// length's grid.
    constexpr Counts(const WindowState& state, std::uint64_t window, std::int64_t shift, Micros at) noexcept
        : now(at), time((std::max)(at, state.stamp())), elapsed(0), length(window), previous(state.previous()),
          current(state.current()), before(state.slowness()) {
        const WindowGrid grid(window, shift);
        elapsed = grid.elapsed(time);
        if (state.length() != window && state.length() != 0) {
            join(WindowGrid(state.length(), shift), state.stamp());
        }
        // Both sides are shifted by one length, so that the windows before the epoch's first stay above zero.
        const Micros start = time + window - elapsed;
        if (state.stamp() + window < start) {
            previous = state.stamp() + 2 * window < start ? 0 : current;
            current = 0;
        }
    }

    [[nodiscard]] static constexpr Micros stamp(const WindowState& state) noexcept { return state.stamp(); }

    /// What to remember, of a client that was last admitted at the stamp.
    [[nodiscard]] constexpr WindowState state(Micros stamp, WindowSlowness slowness) const noexcept {
        slowness.raise_to(before);
        return {stamp, previous, current, length, slowness};
    }

    /// When nothing weighs any more under any plan so far, if a count weighs for so many windows, at the latest.
    [[nodiscard]] static constexpr Micros fresh_at(const WindowState& state, std::uint64_t windows) noexcept {
        const bool fresh = state.current() == 0 && state.previous() == 0;
        return fresh ? 0 : state.stamp() + shift_up(windows, state.slowness().window);
    }

    /// When what was taken would be given back at the average rate of the slowest plan so far.
    [[nodiscard]] static constexpr Micros paid_off_at(const WindowState& state) noexcept {
        return state.stamp() + shift_up(state.current() + state.previous(), 2 * state.slowness().unit);
    }

    /// What of the previous window's count still weighs, rounded up to whole units.
    [[nodiscard]] constexpr std::uint64_t carried() const noexcept {
        if (previous == 0) {
            return 0;
        }
        return multiply_add_divide(previous, length - elapsed, length - 1, length).quotient;
    }

    /// Adds `cost` to the current count, but only until `most` units weigh in all.
    constexpr void add_up_to(std::uint64_t most, std::uint64_t cost) noexcept {
        const std::uint64_t used = carried() + current;
        const std::uint64_t room = used < most ? most - used : 0;
        current += cost < room ? cost : room;
    }

    /// From now until `passed` of the present window has gone by; more than its length reaches into later windows.
    [[nodiscard]] constexpr std::chrono::microseconds until(std::uint64_t passed) const noexcept {
        return std::chrono::microseconds{static_cast<std::int64_t>(time - now + (passed - elapsed))};
    }

private:
    /// Counts kept on another length's grid become one count, as it weighed at the stamp; at most twice the largest
    /// limit there is.
    constexpr void join(const WindowGrid& old, Micros stamp) noexcept {
        if (previous > 0) {
            const std::uint64_t left = old.length - old.elapsed(stamp);
            current += multiply_add_divide(previous, left, old.length - 1, old.length).quotient;
            current = (std::min)(current, 2 * largest_limit);
            previous = 0;
        }
    }
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_WINDOW_HPP
