// SPDX-License-Identifier: MIT
// The word of a slot.
#include <penstock/detail/slot_word.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using Word = penstock::detail::SlotWord<4>;

constexpr std::uint64_t longest = (std::uint64_t{1} << Word::fingerprint_bits) - 1;

TEST_CASE("fingerprint and lock do not touch each other") {
    const Word word = Word().written(longest);
    CHECK(word.fingerprint() == longest);
    CHECK_FALSE(word.locked());
    CHECK(word.lock().locked());
    CHECK(word.lock().fingerprint() == longest);
}

TEST_CASE("a slot of zeros is empty and unlocked") {
    CHECK(Word().empty());
    CHECK_FALSE(Word().locked());
    CHECK_FALSE(Word().written(1).empty());
}

TEST_CASE("every write gives another word, until the sequence has gone round") {
    const Word first = Word().written(5);
    Word word = first;
    for (int i = 1; i < 1 << 4; ++i) {
        word = word.lock().written(5);
        CHECK(word.bits() != first.bits());
        CHECK(word.fingerprint() == 5);
        CHECK_FALSE(word.locked());
    }
    CHECK(word.lock().written(5).bits() == first.bits());
}

TEST_CASE("a slot that changes hands goes on with its sequence") {
    const Word old = Word().written(1).written(1);
    const Word taken = old.lock_for(7);
    CHECK(taken.locked());
    CHECK(taken.fingerprint() == 7);
    CHECK(taken.written(7).bits() == old.written(7).bits());
    CHECK(old.written(0).empty());
    CHECK(old.written(0).bits() != 0);
}

}  // namespace
