// SPDX-License-Identifier: MIT
// SlotWord: the one word of a slot that says whose it is, whether it is locked and how long its limit takes.
#ifndef PENSTOCK_DETAIL_SLOT_WORD_HPP
#define PENSTOCK_DETAIL_SLOT_WORD_HPP

#include <penstock/config.hpp>

#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// A slot's word, from the top: sequence (17 bits), fingerprint 38 bits (0: empty), lock 1 bit, payoff 8 bits.
/// Comparing and exchanging it checks that the slot still holds what was read and takes its lock, in one instruction.
template <unsigned SequenceBits>
class SlotWord {
public:
    constexpr SlotWord() = default;
    explicit constexpr SlotWord(std::uint64_t bits) noexcept : bits_(bits) {}

    /// The fingerprint of a hash, of which the lower bits count: never 0.
    [[nodiscard]] static constexpr std::uint64_t fingerprint_of(std::uint64_t hash) noexcept {
        const std::uint64_t fingerprint = hash << fingerprint_shift & fingerprint_mask;
        return fingerprint == 0 ? std::uint64_t{1} << fingerprint_shift : fingerprint;
    }

    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] constexpr std::uint64_t fingerprint() const noexcept { return bits_ & fingerprint_mask; }
    [[nodiscard]] constexpr bool empty() const noexcept { return fingerprint() == 0; }
    [[nodiscard]] constexpr bool locked() const noexcept { return (bits_ & lock_bit) != 0; }

    /// How long a full limit of the client takes to be paid off, as in detail::Payoff; the longest of all plans so far.
    [[nodiscard]] constexpr unsigned payoff() const noexcept { return static_cast<unsigned>(bits_ & payoff_mask); }

    [[nodiscard]] constexpr SlotWord lock() const noexcept { return SlotWord(bits_ | lock_bit); }

    /// For another client, of whom nothing was written yet.
    [[nodiscard]] constexpr SlotWord given_to(std::uint64_t fingerprint) const noexcept {
        return SlotWord((bits_ & sequence_mask) | fingerprint);
    }

    /// What follows an unlocked word after a write under a plan of that payoff, at most 255: a sequence later, so that
    /// whoever read before learns of it.
    [[nodiscard]] constexpr SlotWord written(unsigned payoff) const noexcept {
        std::uint64_t next = bits_ + sequence_step;
        if (payoff > this->payoff()) [[unlikely]] {
            next += payoff - this->payoff();
        }
        return SlotWord(next);
    }

    /// With nobody in it; the sequence goes on, so that it cannot be mistaken for what it was.
    [[nodiscard]] constexpr SlotWord emptied() const noexcept {
        return SlotWord((bits_ & sequence_mask) + sequence_step);
    }

private:
    static constexpr unsigned payoff_bits = 8;
    static constexpr unsigned fingerprint_bits = 38;
    static constexpr unsigned fingerprint_shift = payoff_bits + 1;

    static constexpr std::uint64_t payoff_mask = (std::uint64_t{1} << payoff_bits) - 1;
    static constexpr std::uint64_t lock_bit = std::uint64_t{1} << payoff_bits;
    static constexpr std::uint64_t fingerprint_mask = ((std::uint64_t{1} << fingerprint_bits) - 1) << fingerprint_shift;
    static constexpr std::uint64_t sequence_step = std::uint64_t{1} << (64 - SequenceBits);
    static constexpr std::uint64_t sequence_mask = ~(sequence_step - 1);

    static_assert(fingerprint_shift + fingerprint_bits + SequenceBits <= 64);

    std::uint64_t bits_ = 0;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_SLOT_WORD_HPP
