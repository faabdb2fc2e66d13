// SPDX-License-Identifier: MIT
// Whole decisions in one line, for tests that know every field.
#ifndef PENSTOCK_TESTS_SUPPORT_DECISIONS_HPP
#define PENSTOCK_TESTS_SUPPORT_DECISIONS_HPP

#include <penstock/decision.hpp>

#include <chrono>
#include <cstdint>

namespace support {

constexpr penstock::Decision allowed(std::uint64_t limit,
                                     std::uint64_t remaining,
                                     std::chrono::microseconds reset_after) {
    return {.allowed = true, .limit = limit, .remaining = remaining, .reset_after = reset_after};
}

constexpr penstock::Decision rejected(std::uint64_t limit,
                                      std::uint64_t remaining,
                                      std::chrono::microseconds retry_after,
                                      std::chrono::microseconds reset_after) {
    return {.allowed = false,
            .limit = limit,
            .remaining = remaining,
            .retry_after = retry_after,
            .reset_after = reset_after};
}

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_DECISIONS_HPP
