// SPDX-License-Identifier: MIT
// share_of: a limit divided among regions or gateways, with nothing lost and nothing added.
#ifndef PENSTOCK_GUARD_SHARE_HPP
#define PENSTOCK_GUARD_SHARE_HPP

#include <penstock/config.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/detail/wide.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

PENSTOCK_BEGIN_NAMESPACE

/// The i-th of n shares of a limit, i from 0: those of all i add up to the limit, and each is within one of limit / n;
/// the last is never smaller than another. Throws std::invalid_argument unless i < n. O(1).
[[nodiscard]] constexpr std::uint64_t share_of(std::uint64_t limit, std::uint64_t i, std::uint64_t n) {
    if (i >= n) {
        detail::throw_invalid(
            "share_of.i", std::to_string(i), n == 0 ? "none of 0 shares" : "0 to " + std::to_string(n - 1));
    }
    return detail::part_of(limit, i, n);
}

/// The share of the i-th of several weights, such as the traffic of regions: those of all i add up to the limit, and
/// each is within one of limit x weight / sum. Throws std::invalid_argument unless there is an i-th weight, and a sum
/// from 1 to 2^64 - 1. O(n).
[[nodiscard]] constexpr std::uint64_t share_of(std::uint64_t limit,
                                               std::span<const std::uint64_t> weights,
                                               std::size_t i) {
    if (i >= weights.size()) {
        detail::throw_invalid(
            "share_of.i", std::to_string(i), "below the number of weights, " + std::to_string(weights.size()));
    }
    std::uint64_t before = 0;
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) {
        before = k == i ? sum : before;
        if (sum + weights[k] < sum) {
            detail::throw_invalid("share_of.weights", "a sum above 2^64 - 1", "a sum of 1 to 18446744073709551615");
        }
        sum += weights[k];
    }
    if (sum == 0) {
        detail::throw_invalid("share_of.weights", "a sum of 0", "a sum of 1 to 18446744073709551615");
    }
    const auto up_to = [&](std::uint64_t part) { return detail::multiply_add_divide(limit, part, 0, sum).quotient; };
    return up_to(before + weights[i]) - up_to(before);
}

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_SHARE_HPP
