// SPDX-License-Identifier: MIT
// Slot: a record under the lock of its own word: a sequence lock that knows whose record it is.
#ifndef PENSTOCK_DETAIL_SLOT_HPP
#define PENSTOCK_DETAIL_SLOT_HPP

#include <penstock/config.hpp>
#include <penstock/detail/slot_word.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// 32 bytes for a record of up to 24, 64 for one of up to 56. All zero is an empty slot. Thread-safe: the record is
/// stored, word by word, only by whoever exchanged the slot's word for a locked one; readers check the word afterwards.
template <class Record, class Sync>
struct alignas(32) Slot {
    static_assert(std::is_trivially_copyable_v<Record>);

    template <class T>
    using Atomic = typename Sync::template Atomic<T>;
    using Word = SlotWord<Sync::sequence_bits>;

    static constexpr std::size_t record_words = (sizeof(Record) + 7) / 8;

    Atomic<std::uint64_t> word{0};
    std::array<Atomic<std::uint64_t>, record_words> record{};

    [[nodiscard]] Word load() const noexcept { return Word(word.load(std::memory_order_acquire)); }

    [[nodiscard]] bool exchange(Word expected, Word desired) noexcept {
        std::uint64_t bits = expected.bits();
        return word.compare_exchange_strong(bits, desired.bits(), std::memory_order_acq_rel, std::memory_order_relaxed);
    }

    /// Unlocks.
    void store(Word desired) noexcept { word.store(desired.bits(), std::memory_order_release); }

    /// Copies the record out. False if the slot is or was being written: what was copied may be torn.
    [[nodiscard]] bool read(Word expected, Record& copy) const noexcept {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < record_words; ++i) {
            const std::uint64_t bits = record[i].load(std::memory_order_acquire);
            std::memcpy(reinterpret_cast<std::byte*>(&copy) + 8 * i, &bits, bytes_in_word(i));
        }
        return !expected.locked() && word.load(std::memory_order_relaxed) == expected.bits();
    }

    /// Writes the record of a locked slot and unlocks it.
    void publish(Word desired, const Record& written) noexcept {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < record_words; ++i) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, reinterpret_cast<const std::byte*>(&written) + 8 * i, bytes_in_word(i));
            record[i].store(bits, std::memory_order_release);
        }
        store(desired);
    }

private:
    [[nodiscard]] static constexpr std::size_t bytes_in_word(std::size_t index) noexcept {
        const std::size_t rest = sizeof(Record) - 8 * index;
        return rest < 8 ? rest : 8;
    }
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_SLOT_HPP
