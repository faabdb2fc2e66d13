// SPDX-License-Identifier: MIT
// PlanShares: the plans of shares, reckoned once.
#ifndef PENSTOCK_GUARD_PLAN_SHARES_HPP
#define PENSTOCK_GUARD_PLAN_SHARES_HPP

#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/detail/plan_cell.hpp>
#include <penstock/plan.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Remembers the last few plans that were asked for, since to make one takes divisions. Thread-safe.
template <Shareable Algorithm>
class PlanShares {
public:
    /// The plan of the i-th of n parts of a plan. There must be something in it: some are empty if n is above a limit.
    [[nodiscard]] Plan<Algorithm> share(const Plan<Algorithm>& whole, std::uint64_t i, std::uint64_t n) noexcept {
        for (const PlanCell<std::optional<Entry>>& cell : cells_) {
            const auto copy = cell.load();
            const std::optional<Entry>& entry = copy.plan();
            if (!entry.has_value()) {
                break;
            }
            if (entry->i == i && entry->n == n && entry->whole == whole.algorithm()) {
                return entry->part;
            }
        }
        const Plan<Algorithm> part(whole.algorithm().share(i, n));
        cells_[next_.fetch_add(1, std::memory_order_relaxed) % cells_.size()].store(
            Entry{whole.algorithm(), part, i, n});
        return part;
    }

private:
    struct Entry {
        Algorithm whole;
        Plan<Algorithm> part;
        std::uint64_t i;
        std::uint64_t n;
    };
    using Cell = PlanCell<std::optional<Entry>>;

    std::array<Cell, 8> cells_{Cell{{}}, Cell{{}}, Cell{{}}, Cell{{}}, Cell{{}}, Cell{{}}, Cell{{}}, Cell{{}}};
    std::atomic<std::size_t> next_{0};
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_PLAN_SHARES_HPP
