// SPDX-License-Identifier: MIT
// PlanCell: a plan that is replaced while other threads read it: they copy it and see the old one or the new, whole.
#ifndef PENSTOCK_DETAIL_PLAN_CELL_HPP
#define PENSTOCK_DETAIL_PLAN_CELL_HPP

#include <penstock/config.hpp>
#include <penstock/detail/os.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// A sequence lock: reading writes nothing, so that readers on many cores share the line. Thread-safe.
template <class Plan>
class PlanCell {
    static_assert(std::is_trivially_copyable_v<Plan>);

    static constexpr std::size_t word_count = (sizeof(Plan) + 7) / 8;

public:
    /// A copy of the plan. It is made word by word and used in place, since processors forward a store only to loads
    /// that it covers: a second, wider copy would wait for the first.
    class Copy {
    public:
        [[nodiscard]] const Plan& plan() const noexcept {
            return *std::launder(reinterpret_cast<const Plan*>(bytes_.data()));
        }

    private:
        friend class PlanCell;
        alignas(Plan) std::array<std::byte, 8 * word_count> bytes_;
    };

    explicit PlanCell(const Plan& plan) noexcept { write(plan); }

    [[nodiscard]] Copy load() const noexcept {
        Copy copy;
        while (!try_load(copy)) {
            yield_thread();
        }
        return copy;
    }

    void store(const Plan& plan) noexcept {
        std::uint64_t even = sequence_.load(std::memory_order_relaxed) & ~std::uint64_t{1};
        while (!sequence_.compare_exchange_weak(even, even + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
            even &= ~std::uint64_t{1};
            yield_thread();
        }
        write(plan);
        sequence_.store(even + 2, std::memory_order_release);
    }

private:
    [[nodiscard]] bool try_load(Copy& copy) const noexcept {
        const std::uint64_t before = sequence_.load(std::memory_order_acquire);
#pragma GCC unroll 16
        for (std::size_t i = 0; i < word_count; ++i) {
            const std::uint64_t word = words_[i].load(std::memory_order_acquire);
            std::memcpy(copy.bytes_.data() + 8 * i, &word, 8);
        }
        return before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before;
    }

    void write(const Plan& plan) noexcept {
        std::array<std::uint64_t, word_count> words{};
        std::memcpy(words.data(), &plan, sizeof plan);
        for (std::size_t i = 0; i < word_count; ++i) {
            words_[i].store(words[i], std::memory_order_release);
        }
    }

    std::atomic<std::uint64_t> sequence_{0};  // odd while being written
    std::array<std::atomic<std::uint64_t>, word_count> words_{};
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_PLAN_CELL_HPP
