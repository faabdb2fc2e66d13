// SPDX-License-Identifier: MIT
// Check: one entry of a batch, and PlannedCheck: one of several that pass together.
#ifndef PENSTOCK_CHECK_HPP
#define PENSTOCK_CHECK_HPP

#include <penstock/config.hpp>
#include <penstock/plan.hpp>

#include <cstdint>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

/// How much a request matters when there is too much to do: load shedding starts with the low.
enum class Priority : std::uint8_t { low, normal, high };

/// One entry of a batch. The key must live until the batch is decided.
struct Check {
    std::string_view key{};
    std::uint64_t cost = 1;
    Priority priority = Priority::normal;
};

/// One of several checks that pass together or not at all, each with a plan of its own. Key and plan must live until
/// they are decided.
template <class Algorithm>
struct PlannedCheck {
    std::string_view key{};
    const Plan<Algorithm>* plan = nullptr;
    std::uint64_t cost = 1;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_CHECK_HPP
