// SPDX-License-Identifier: MIT
// The texts with which wrong configuration is refused, and the bounds of the contract.
#ifndef PENSTOCK_TESTS_SUPPORT_REFUSAL_HPP
#define PENSTOCK_TESTS_SUPPORT_REFUSAL_HPP

#include <penstock/clock.hpp>
#include <penstock/decision.hpp>
#include <penstock/limiter.hpp>
#include <penstock/plan.hpp>
#include <penstock/storage/local.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace support {

inline constexpr std::uint64_t largest_limit = 549'755'813'888;                 // 2^39
inline constexpr std::chrono::microseconds longest_period{35'184'372'088'832};  // 2^45
inline constexpr std::chrono::microseconds last_moment{9'007'199'254'740'991};  // 2^53 - 1
inline constexpr std::chrono::microseconds one_us{1};

template <class Action>
std::string text_of(Action&& action) {
    try {
        action();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "(not refused)";
}

/// The text with which an algorithm is refused wherever it is given: to plan(), to a new limiter, and to one that has a
/// client already, which keeps its algorithm and its client.
template <class Algorithm>
std::string refusal(const Algorithm& wrong, const Algorithm& right) {
    const penstock::LocalStorage small{{.max_keys = 1}};
    const std::string text = text_of([&] { (void)penstock::plan(wrong); });
    CHECK(text_of([&] { penstock::Limiter{wrong, small}; }) == text);

    penstock::Limiter limiter{right, small, penstock::ManualClock{}};
    CHECK(limiter.check("client").allowed);
    const penstock::Decision before = limiter.peek("client");
    CHECK(text_of([&] { limiter.configure(wrong); }) == text);
    CHECK(limiter.algorithm() == right);
    CHECK(limiter.peek("client") == before);
    return text;
}

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_REFUSAL_HPP
