// SPDX-License-Identifier: MIT
// share_of_plan: the plan of a share, reckoned once by each thread.
#ifndef PENSTOCK_GUARD_PLAN_SHARES_HPP
#define PENSTOCK_GUARD_PLAN_SHARES_HPP

#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// The shares that a thread has asked for of late, since to make one takes divisions. Not thread-safe.
template <Shareable Algorithm>
class PlanShares {
public:
    /// The plan of the i-th of n parts of a plan. It stays until the next call.
    [[nodiscard]] const Plan<Algorithm>& share(const Plan<Algorithm>& whole,
                                               std::uint64_t i,
                                               std::uint64_t n) noexcept {
        std::optional<Entry>& entry = entries_[place(whole, i, n)];
        if (!entry.has_value() || entry->i != i || entry->n != n || !(entry->whole == whole.algorithm())) [[unlikely]] {
            entry.emplace(Entry{whole.algorithm(), Plan<Algorithm>(whole.algorithm().share(i, n)), i, n});
        }
        return entry->part;
    }

private:
    static constexpr std::size_t bits = 6;

    struct Entry {
        Algorithm whole;
        Plan<Algorithm> part;
        std::uint64_t i;
        std::uint64_t n;
    };

    /// Different limits, such as those of tiers, and different shares have places of their own, mostly.
    [[nodiscard]] static std::size_t place(const Plan<Algorithm>& whole, std::uint64_t i, std::uint64_t n) noexcept {
        std::uint64_t mixed = i + 64 * n;
        if constexpr (Limited<Plan<Algorithm>>) {
            mixed += 4096 * whole.limit();
        }
        return static_cast<std::size_t>(mixed * 0x9e3779b97f4a7c15 >> (64 - bits));
    }

    std::array<std::optional<Entry>, std::size_t{1} << bits> entries_;
};

/// The plan of the i-th of n parts of a plan, until this thread asks for the next. There must be something in it: some
/// are empty if n is above a limit. Thread-safe.
template <Shareable Algorithm>
[[nodiscard]] const Plan<Algorithm>& share_of_plan(const Plan<Algorithm>& whole,
                                                   std::uint64_t i,
                                                   std::uint64_t n) noexcept {
    thread_local PlanShares<Algorithm> shares;
    return shares.share(whole, i, n);
}

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_PLAN_SHARES_HPP
