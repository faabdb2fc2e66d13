// SPDX-License-Identifier: MIT
// Plan: an algorithm's parameters, validated and reduced once, then used for every check.
#ifndef PENSTOCK_PLAN_HPP
#define PENSTOCK_PLAN_HPP

#include <penstock/config.hpp>
#include <penstock/detail/throw.hpp>

#include <bit>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

/// Microseconds since the epoch of the limiter's clock, below 2^53.
using Micros = std::uint64_t;

/// Stands for the time at which the store decides, where a limiter's clock is ServerClock.
inline constexpr Micros store_time = ~Micros{0};

/// Whether all clients' windows start together, or each at a shift of its own, fixed by a public hash of the key, so
/// that a million clients do not come back at the same instant.
enum class Align : std::uint8_t { epoch, staggered };

/// The validated parameters of an algorithm: small, immutable, trivially copyable; make it once and pass it around.
/// This is the plan of an algorithm that has no reduced form: the parameters themselves, checked by the algorithm's
/// own `validate()` if it has one. The algorithms of the library specialise it.
template <class Algorithm>
class Plan : public Algorithm {
public:
    explicit constexpr Plan(const Algorithm& algorithm) : Algorithm(algorithm) {
        if constexpr (requires { algorithm.validate(); }) {
            algorithm.validate();
        }
    }

    [[nodiscard]] constexpr const Algorithm& algorithm() const noexcept { return *this; }
};

/// Validates an algorithm's parameters. Throws std::invalid_argument that names field, value and what is allowed.
template <class Algorithm>
[[nodiscard]] constexpr Plan<Algorithm> plan(const Algorithm& algorithm) {
    return Plan<Algorithm>(algorithm);
}

namespace detail {

inline constexpr std::uint64_t largest_limit = std::uint64_t{1} << 39;
inline constexpr std::int64_t longest_period = std::int64_t{1} << 45;
inline constexpr Micros end_of_time = Micros{1} << 53;

/// The least exponent whose power of two is at least the number, which is at least 1.
[[nodiscard]] constexpr unsigned exponent_of(std::uint64_t number) noexcept {
    return static_cast<unsigned>(std::bit_width(number - 1));
}

/// number x 2^bits, or the end of time if that is earlier.
[[nodiscard]] constexpr Micros shift_up(std::uint64_t number, unsigned bits) noexcept {
    return number > end_of_time >> bits ? end_of_time : number << bits;
}

/// Throws unless 1 <= limit <= 2^39.
constexpr void validate_limit(std::string_view field, std::uint64_t limit) {
    if (limit < 1 || limit > largest_limit) {
        throw_invalid(field, std::to_string(limit), "1 to 549755813888");
    }
}

/// Throws unless 1 us <= period <= 2^45 us.
constexpr void validate_period(std::string_view field, std::chrono::microseconds period) {
    if (period.count() < 1 || period.count() > longest_period) {
        throw_invalid(field, std::to_string(period.count()) + " us", "1 us to 35184372088832 us");
    }
}

/// Whether the steps of a plan want the key's phase: only then is it computed.
template <class AnyPlan>
[[nodiscard]] constexpr bool is_staggered(const AnyPlan& plan) noexcept {
    if constexpr (requires { plan.staggered(); }) {
        return plan.staggered();
    } else {
        return false;
    }
}

/// A time in one byte: (1 + its lower two bits / 4) x 2^(its upper six) microseconds. The longer, the larger.
struct Payoff {
    /// Of `units`, at least one, that take 2^slowness us each: rounded up, by less than a quarter.
    [[nodiscard]] static constexpr unsigned of(std::uint64_t units, unsigned slowness) noexcept {
        const auto exponent = static_cast<unsigned>(std::bit_width(units)) - 1;
        const unsigned low = exponent < 2 ? 0 : exponent - 2;
        const std::uint64_t up = (std::uint64_t{1} << low) - 1;
        const std::uint64_t quarters = exponent < 2 ? units << (2 - exponent) : (units + up) >> low;
        return 4 * (exponent + slowness) + static_cast<unsigned>(quarters - 4);  // 8 are the next exponent's 4
    }

    /// A time of at most 2^53 us as a share of it, in 256ths.
    [[nodiscard]] static constexpr std::uint64_t share(Micros time, unsigned payoff) noexcept {
        return (time << 8 >> payoff / 4) * 4 / (4 + payoff % 4);
    }
};

/// How long a full limit of the plan takes to be paid off (see `paid_off_at` in concepts.hpp); 0 if it does not tell.
template <class AnyPlan>
[[nodiscard]] constexpr unsigned payoff(const AnyPlan& plan) noexcept {
    if constexpr (requires { plan.payoff(); }) {
        return plan.payoff();
    } else {
        return 0;
    }
}

constexpr void validate_align(std::string_view field, Align align) {
    if (align != Align::epoch && align != Align::staggered) {
        throw_invalid(field, std::to_string(static_cast<int>(align)), "Align::epoch or Align::staggered");
    }
}

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_PLAN_HPP
