// SPDX-License-Identifier: MIT
// SlotWord: the one word of a slot that says whose it is, whether it is locked and when it expires.
#ifndef PENSTOCK_DETAIL_SLOT_WORD_HPP
#define PENSTOCK_DETAIL_SLOT_WORD_HPP

#include <penstock/config.hpp>

#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// A slot's word, from the top: fingerprint 40 bits (0: empty), lock 1 bit, sequence. Comparing and exchanging it
/// checks that the slot still holds what was read and takes its lock, in one instruction.
template <unsigned SequenceBits>
class SlotWord {
public:
    static constexpr unsigned fingerprint_bits = 40;

    constexpr SlotWord() = default;
    explicit constexpr SlotWord(std::uint64_t bits) noexcept : bits_(bits) {}

    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr std::uint64_t fingerprint() const noexcept { return bits_ >> fingerprint_shift; }
    [[nodiscard]] constexpr bool empty() const noexcept { return fingerprint() == 0; }
    [[nodiscard]] constexpr bool locked() const noexcept { return (bits_ & lock_bit) != 0; }

    [[nodiscard]] constexpr SlotWord lock() const noexcept { return SlotWord(bits_ | lock_bit); }

    /// Locked for another key: the old one is gone from here on.
    [[nodiscard]] constexpr SlotWord lock_for(std::uint64_t fingerprint) const noexcept {
        return SlotWord((fingerprint << fingerprint_shift) | lock_bit | (bits_ & sequence_mask));
    }

    /// Unlocked after a write: a sequence later, so that whoever read before learns of it.
    [[nodiscard]] constexpr SlotWord written(std::uint64_t fingerprint) const noexcept {
        return SlotWord((fingerprint << fingerprint_shift) | ((bits_ + 1) & sequence_mask));
    }

private:
    static constexpr unsigned fingerprint_shift = 64 - fingerprint_bits;
    static constexpr std::uint64_t lock_bit = std::uint64_t{1} << (fingerprint_shift - 1);
    static constexpr std::uint64_t sequence_mask = (std::uint64_t{1} << SequenceBits) - 1;

    static_assert(SequenceBits < fingerprint_shift);

    std::uint64_t bits_ = 0;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_SLOT_WORD_HPP
