// SPDX-License-Identifier: MIT
// Rate: so many units per period, kept as the fraction it is.
#ifndef PENSTOCK_RATE_HPP
#define PENSTOCK_RATE_HPP

#include <penstock/config.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

/// `count` units per `period`. Any fraction is exact: 10 per 13 s stays 10/13. What is allowed depends on where the
/// rate is used, and is checked there.
struct Rate {
    std::int64_t count = 0;
    std::chrono::microseconds period{0};

    friend constexpr bool operator==(const Rate&, const Rate&) noexcept = default;
};

/// n units per period of whole microseconds. A floating-point n does not compile: give a longer period instead.
[[nodiscard]] constexpr Rate per(std::integral auto n, std::chrono::microseconds period) noexcept {
    constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
    return {std::cmp_greater(n, most) ? most : static_cast<std::int64_t>(n), period};
}

[[nodiscard]] constexpr Rate per_second(std::integral auto n) noexcept {
    return per(n, std::chrono::seconds{1});
}

[[nodiscard]] constexpr Rate per_minute(std::integral auto n) noexcept {
    return per(n, std::chrono::minutes{1});
}

[[nodiscard]] constexpr Rate per_hour(std::integral auto n) noexcept {
    return per(n, std::chrono::hours{1});
}

[[nodiscard]] constexpr Rate per_day(std::integral auto n) noexcept {
    return per(n, std::chrono::hours{24});
}

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_RATE_HPP
