// SPDX-License-Identifier: MIT
// Random plans over the whole valid range, costs and clocks that look for trouble, and each plan's twin in the
// reference.
#ifndef PENSTOCK_TESTS_SUPPORT_RANDOM_TRACE_HPP
#define PENSTOCK_TESTS_SUPPORT_RANDOM_TRACE_HPP

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/decision.hpp>
#include <penstock/plan.hpp>
#include <penstock/rate.hpp>

#include "random.hpp"
#include "rational_reference.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace trace {

using std::chrono::microseconds;

inline constexpr std::uint64_t max_time = (std::uint64_t{1} << 53) - 1;
inline constexpr std::uint64_t max_limit = std::uint64_t{1} << 39;
inline constexpr std::uint64_t max_window = std::uint64_t{1} << 45;
inline constexpr std::uint64_t max_cost = (std::numeric_limits<std::uint64_t>::max)();
inline constexpr std::uint64_t forty_years = 1'262'304'000'000'000;

inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// How many steps a test program takes in all; PENSTOCK_STEPS sets it.
inline std::uint64_t step_count(std::uint64_t otherwise) {
    return number_from_environment("PENSTOCK_STEPS", otherwise);
}

/// Which traces a run takes: runs with different PENSTOCK_SEED share none.
inline std::uint64_t seed_offset() {
    return number_from_environment("PENSTOCK_SEED", 0);
}

using support::Random;

/// The generator of one trace, from the seed of the run and the number of the trace in it.
inline Random random_of(std::uint64_t test, std::uint64_t number) {
    return Random(Random(Random(seed_offset()).bits() ^ (test << 48) ^ number).bits());
}

inline std::uint64_t minus(std::uint64_t a, std::uint64_t b) {
    return a > b ? a - b : 0;
}

inline microseconds micros(std::uint64_t count) {
    return microseconds(static_cast<std::int64_t>(count));
}

inline std::uint64_t count_of(microseconds duration) {
    return static_cast<std::uint64_t>((std::max)(duration.count(), std::int64_t{0}));
}

inline std::uint64_t count_of(const penstock::Rate& rate) {
    return static_cast<std::uint64_t>(rate.count);
}

/// Where the limits and the times of a plan are taken from.
struct Range {
    std::uint64_t least_limit = 1;
    std::uint64_t most_limit = max_limit;
    std::uint64_t least_time = 1;
    std::uint64_t most_time = max_window;
};

inline Range random_range(Random& random) {
    if (random.chance(30)) {
        return {};
    }
    const std::uint64_t limit = random.log_between(1, random.chance(50) ? 100 : max_limit);
    const std::uint64_t time = random.log_between(1, max_window);
    return {limit / 4 + 1, (std::min)(limit * 4, max_limit), time / 4 + 1, (std::min)(time * 4, max_window)};
}

inline std::uint64_t random_limit(Random& random, const Range& range) {
    const std::uint64_t limit = random.chance(15) ? random.one_of({1, 2, 3, 10, max_limit - 1, max_limit})
                                                  : random.log_between(range.least_limit, range.most_limit);
    return (std::clamp)(limit, range.least_limit, range.most_limit);
}

inline std::uint64_t random_time(Random& random, const Range& range) {
    const std::uint64_t time =
        random.chance(25)
            ? random.one_of({1, 2, 1'000'000, 60'000'000, 3'600'000'000, 86'400'000'000, max_window - 1, max_window})
            : random.log_between(range.least_time, range.most_time);
    return (std::clamp)(time, range.least_time, range.most_time);
}

// Token buckets.

__extension__ using Wide = unsigned __int128;

/// The largest capacity whose double is refilled in less than 2^53 us.
inline std::uint64_t largest_capacity(const penstock::Rate& rate) {
    const Wide bound = Wide{max_time} * count_of(rate) / (Wide{2} * count_of(rate.period));
    return static_cast<std::uint64_t>((std::min)(bound, Wide{max_limit}));
}

inline penstock::Rate random_rate(Random& random, std::uint64_t capacity, const Range& range) {
    const std::uint64_t period = random_time(random, random.chance(50) ? range : Range{});
    const std::uint64_t fastest = 10 * period;
    if (random.chance(10)) {
        return penstock::per(random.one_of({1, fastest, fastest - 1}), micros(period));
    }
    const Wide count = Wide{capacity} * period / random_time(random, range);
    return penstock::per(static_cast<std::uint64_t>((std::clamp)(count, Wide{1}, Wide{fastest})), micros(period));
}

inline penstock::TokenBucket within_bounds(penstock::TokenBucket bucket) {
    bucket.capacity = (std::clamp)(bucket.capacity, std::uint64_t{1}, largest_capacity(bucket.refill));
    return bucket;
}

inline penstock::TokenBucket random_parameters(Random& random,
                                               const Range& range,
                                               std::type_identity<penstock::TokenBucket>) {
    const std::uint64_t capacity = random_limit(random, range);
    penstock::TokenBucket bucket{.capacity = capacity, .refill = random_rate(random, capacity, range)};
    if (random.chance(5)) {
        bucket.capacity = max_limit;  // cut down to what is refilled just below 2^53 us
    }
    return within_bounds(bucket);
}

inline std::uint64_t varied_limit(Random& random, std::uint64_t limit) {
    return (std::clamp)(random.one_of({limit,
                                       limit + 1,
                                       limit - 1,
                                       limit * 2,
                                       limit / 2,
                                       limit / 10,
                                       limit * 10,
                                       random.log_between(1, max_limit)}),
                        std::uint64_t{1},
                        max_limit);
}

inline std::uint64_t varied_time(Random& random, std::uint64_t time) {
    return (std::clamp)(random.one_of({time,
                                       time + 1,
                                       time - 1,
                                       time * 2,
                                       time / 2,
                                       time * 3,
                                       time / 7,
                                       time * 60,
                                       random.log_between(1, max_window)}),
                        std::uint64_t{1},
                        max_window);
}

inline penstock::TokenBucket varied(Random& random, penstock::TokenBucket bucket) {
    if (random.chance(60)) {
        bucket.capacity = varied_limit(random, bucket.capacity);
    }
    if (random.chance(50)) {
        const std::uint64_t period = varied_time(random, count_of(bucket.refill.period));
        const std::uint64_t count =
            random.chance(50) ? varied_limit(random, count_of(bucket.refill)) : count_of(bucket.refill);
        bucket.refill = penstock::per((std::min)(count, 10 * period), micros(period));
    }
    return within_bounds(bucket);
}

inline reference::TokenBucket model_of(const penstock::TokenBucket& bucket) {
    return {bucket.capacity, count_of(bucket.refill), bucket.refill.period.count()};
}

inline std::uint64_t limit_of(const penstock::TokenBucket& bucket) {
    return bucket.capacity;
}

/// The time in which things happen: of the whole refill, or of one window.
inline std::uint64_t time_scale(const penstock::TokenBucket& bucket) {
    return static_cast<std::uint64_t>(Wide{bucket.capacity} * count_of(bucket.refill.period) /
                                      count_of(bucket.refill)) +
           1;
}

inline void describe(std::ostream& out, const penstock::TokenBucket& bucket) {
    out << "TokenBucket{" << bucket.capacity << ", " << bucket.refill.count << " per " << bucket.refill.period.count()
        << " us}";
}

// Windows.

inline penstock::Align random_align(Random& random) {
    return random.chance(50) ? penstock::Align::epoch : penstock::Align::staggered;
}

inline microseconds random_offset(Random& random) {
    const auto distance =
        static_cast<std::int64_t>(random.one_of({0, 0, 1, random.log_between(1, max_window), max_window}));
    return microseconds(random.chance(50) ? distance : -distance);
}

inline penstock::SlidingWindow random_parameters(Random& random,
                                                 const Range& range,
                                                 std::type_identity<penstock::SlidingWindow>) {
    return {.limit = random_limit(random, range),
            .window = micros(random_time(random, range)),
            .align = random_align(random)};
}

inline penstock::FixedWindow random_parameters(Random& random,
                                               const Range& range,
                                               std::type_identity<penstock::FixedWindow>) {
    return {.limit = random_limit(random, range),
            .window = micros(random_time(random, range)),
            .align = random_align(random),
            .offset = random_offset(random)};
}

template <class Window>
Window varied_window(Random& random, Window window) {
    if (random.chance(60)) {
        window.limit = varied_limit(random, window.limit);
    }
    if (random.chance(50)) {
        window.window = micros(varied_time(random, count_of(window.window)));
    }
    if (random.chance(15)) {
        window.align = random_align(random);
    }
    return window;
}

inline penstock::SlidingWindow varied(Random& random, const penstock::SlidingWindow& window) {
    return varied_window(random, window);
}

inline penstock::FixedWindow varied(Random& random, const penstock::FixedWindow& window) {
    penstock::FixedWindow other = varied_window(random, window);
    if (random.chance(15)) {
        other.offset = random_offset(random);
    }
    return other;
}

inline reference::SlidingWindow model_of(const penstock::SlidingWindow& window) {
    return {window.limit, window.window.count(), window.align == penstock::Align::staggered};
}

inline reference::FixedWindow model_of(const penstock::FixedWindow& window) {
    return {window.limit, window.window.count(), window.align == penstock::Align::staggered, window.offset.count()};
}

inline std::uint64_t limit_of(const penstock::SlidingWindow& window) {
    return window.limit;
}

inline std::uint64_t limit_of(const penstock::FixedWindow& window) {
    return window.limit;
}

inline std::uint64_t time_scale(const penstock::SlidingWindow& window) {
    return count_of(window.window);
}

inline std::uint64_t time_scale(const penstock::FixedWindow& window) {
    return count_of(window.window);
}

inline const char* name_of(penstock::Align align) {
    return align == penstock::Align::epoch ? "epoch" : "staggered";
}

inline void describe(std::ostream& out, const penstock::SlidingWindow& window) {
    out << "SlidingWindow{" << window.limit << ", " << window.window.count() << " us, " << name_of(window.align) << '}';
}

inline void describe(std::ostream& out, const penstock::FixedWindow& window) {
    out << "FixedWindow{" << window.limit << ", " << window.window.count() << " us, " << name_of(window.align)
        << ", offset " << window.offset.count() << " us}";
}

// AllOf: its parameters are kept as a tuple.

template <class... Parts>
std::tuple<Parts...> random_parameters(Random& random,
                                       const Range& range,
                                       std::type_identity<penstock::AllOf<Parts...>>) {
    return std::tuple<Parts...>{random_parameters(random, range, std::type_identity<Parts>{})...};
}

template <class... Parts>
std::tuple<Parts...> varied(Random& random, const std::tuple<Parts...>& parts) {
    return std::apply([&](const auto&... part) { return std::tuple<Parts...>{varied(random, part)...}; }, parts);
}

template <class... Parts>
auto model_of(const std::tuple<Parts...>& parts) {
    return std::apply([](const auto&... part) { return reference::AllOf(model_of(part)...); }, parts);
}

template <class... Parts>
std::uint64_t limit_of(const std::tuple<Parts...>& parts) {
    return std::apply([](const auto&... part) { return (std::min)({limit_of(part)...}); }, parts);
}

template <class... Parts>
std::uint64_t time_scale(const std::tuple<Parts...>& parts) {
    return std::apply([](const auto&... part) { return (std::min)({time_scale(part)...}); }, parts);
}

template <class... Parts>
void describe(std::ostream& out, const std::tuple<Parts...>& parts) {
    out << "AllOf{";
    std::apply([&](const auto&... part) { ((describe(out, part), out << ' '), ...); }, parts);
    out << '}';
}

template <class Algorithm>
const Algorithm& algorithm_of(const Algorithm& algorithm) {
    return algorithm;
}

template <class... Parts>
penstock::AllOf<Parts...> algorithm_of(const std::tuple<Parts...>& parts) {
    return std::apply([](const auto&... part) { return penstock::AllOf<Parts...>(part...); }, parts);
}

template <class Algorithm>
using ParametersOf = decltype(random_parameters(std::declval<Random&>(), Range{}, std::type_identity<Algorithm>{}));

template <class Algorithm>
inline constexpr bool can_reserve = false;
template <>
inline constexpr bool can_reserve<penstock::TokenBucket> = true;
template <class... Parts>
inline constexpr bool can_reserve<penstock::AllOf<Parts...>> = (can_reserve<Parts> && ...);

/// One set of parameters: the library's plan and the reference's model of it.
template <class Algorithm>
struct Twin {
    using Parameters = ParametersOf<Algorithm>;
    using Model = decltype(model_of(std::declval<const Parameters&>()));

    explicit Twin(const Parameters& given)
        : parameters(given), plan(penstock::plan(algorithm_of(given))), model(model_of(given)) {}

    std::uint64_t limit() const { return limit_of(parameters); }
    std::uint64_t scale() const { return time_scale(parameters); }

    Parameters parameters;
    penstock::Plan<Algorithm> plan;
    Model model;
};

/// A plan and up to three that a client may be moved to.
template <class Algorithm>
std::vector<Twin<Algorithm>> random_twins(Random& random) {
    const auto first = random_parameters(random, random_range(random), std::type_identity<Algorithm>{});
    std::vector<Twin<Algorithm>> twins{Twin<Algorithm>(first)};
    for (std::uint64_t more = random.one_of({0, 0, 1, 1, 2, 3}); more > 0; --more) {
        twins.emplace_back(varied(random, first));
    }
    return twins;
}

// Clocks and costs.

inline std::uint64_t random_start(Random& random, std::uint64_t scale) {
    if (random.chance(20)) {
        return random.one_of({0, 1, scale, max_time, minus(max_time, scale), minus(max_time, 5 * scale)});
    }
    return random.log_between(1, max_time);
}

inline std::uint64_t random_phase(Random& random) {
    return random.chance(20) ? random.one_of({0, 1, max_time}) : random.log_between(0, max_time);
}

/// Where the clock goes next. `waits` are those that the last decisions told: their ends are what matters most.
inline std::uint64_t next_time(Random& random,
                               std::uint64_t now,
                               const std::array<microseconds, 2>& waits,
                               std::uint64_t scale) {
    const microseconds told = waits[random.bits() % 2];
    const std::uint64_t wait = told == penstock::never ? 0 : count_of(told);
    const std::uint64_t dice = random.bits() % 1000;
    std::uint64_t next = now;
    if (dice < 250) {
        return now;
    } else if (dice < 450) {
        next = now + wait;
    } else if (dice < 580) {
        next = now + minus(wait, 1);
    } else if (dice < 600) {
        next = now + wait + 1;
    } else if (dice < 720) {
        next = now + random.log_between(1, scale);
    } else if (dice < 840) {
        next = now + random.between(1, scale);
    } else if (dice < 880) {
        next = now + random.between(1, 3);
    } else if (dice < 920) {
        next = (now / scale + 1) * scale - random.between(0, 1);
    } else if (dice < 940) {
        next = now + scale * random.between(1, 3);
    } else if (dice < 980) {
        next = minus(now, random.log_between(1, 2 * scale));
    } else if (dice < 988) {
        next = random.between(0, now);
    } else if (dice < 991) {
        next = now + forty_years;
    } else if (dice < 992) {
        next = max_time;
    } else {
        next = now + random.log_between(1, 100 * scale);
    }
    return (std::min)(next, max_time);
}

/// Mostly what just fits and what just does not.
inline std::uint64_t random_cost(Random& random, std::uint64_t remaining, std::uint64_t limit) {
    const std::uint64_t dice = random.bits() % 100;
    if (dice < 25) {
        return 1;
    } else if (dice < 40) {
        return random.log_between(1, limit);
    } else if (dice < 50) {
        return random.between(1, limit);
    } else if (dice < 60) {
        return random.between(0, remaining);
    } else if (dice < 82) {
        return random.one_of({remaining, remaining + 1, minus(remaining, 1), remaining / 2 + 1});
    } else if (dice < 92) {
        return random.one_of({limit, limit + 1, limit - 1, 2 * limit, 2 * limit + 1});
    } else if (dice < 96) {
        return 0;
    }
    return random.one_of({max_cost, max_cost - 1, max_cost - limit, max_cost / 2 + 1, random.log_between(1, max_cost)});
}

// Comparison.

inline bool same(const penstock::Decision& ours, const reference::Decision& right) {
    return ours.allowed == right.allowed && ours.limit == right.limit && ours.remaining == right.remaining &&
           ours.retry_after.count() == right.retry_after && ours.reset_after.count() == right.reset_after &&
           ours.source == penstock::Source::store;
}

inline bool same(const penstock::Reservation& ours, const reference::Reservation& right) {
    return same(ours.decision, right.decision) && ours.wait.count() == right.wait;
}

}  // namespace trace

#endif  // PENSTOCK_TESTS_SUPPORT_RANDOM_TRACE_HPP
