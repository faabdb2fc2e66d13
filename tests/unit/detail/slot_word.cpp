// SPDX-License-Identifier: MIT
// The word of a slot.
#include <penstock/detail/slot_word.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using Word = penstock::detail::SlotWord<4>;

constexpr std::uint64_t longest = Word::fingerprint_of(~std::uint64_t{0});
constexpr std::uint64_t some = Word::fingerprint_of(5);
constexpr std::uint64_t another = Word::fingerprint_of(7);

TEST_CASE("a fingerprint is the lower 38 bits of a hash, and never zero") {
    CHECK(Word::fingerprint_of(1) != Word::fingerprint_of(2));
    CHECK(Word::fingerprint_of(std::uint64_t{1} << 37) != Word::fingerprint_of(std::uint64_t{1} << 36));
    CHECK(Word::fingerprint_of(std::uint64_t{1} << 38 | 5) == some);
    CHECK(Word::fingerprint_of(0) != 0);
    CHECK(Word::fingerprint_of(std::uint64_t{1} << 38) != 0);
}

/// A slot's word after a first client was put into it.
constexpr Word word_of(std::uint64_t fingerprint, unsigned payoff = 0) {
    return Word().given_to(fingerprint).written(payoff);
}

TEST_CASE("fingerprint, lock and payoff do not touch each other") {
    const Word word = word_of(longest, 255);
    CHECK(word.fingerprint() == longest);
    CHECK(word.payoff() == 255);
    CHECK_FALSE(word.locked());
    CHECK(word.lock().locked());
    CHECK(word.lock().fingerprint() == longest);
    CHECK(word.lock().payoff() == 255);
}

TEST_CASE("a slot of zeros is empty and unlocked") {
    CHECK(Word().empty());
    CHECK_FALSE(Word().locked());
    CHECK_FALSE(word_of(some).empty());
}

TEST_CASE("every write gives another word, until the sequence has gone round") {
    const Word first = word_of(some);
    Word word = first;
    for (int i = 1; i < 1 << 4; ++i) {
        word = word.written(0);
        CHECK(word.bits() != first.bits());
        CHECK(word.fingerprint() == some);
        CHECK_FALSE(word.locked());
    }
    CHECK(word.written(0).bits() == first.bits());
}

TEST_CASE("the payoff only rises until another client comes") {
    const Word word = word_of(some, 7);
    CHECK(word.written(3).payoff() == 7);
    CHECK(word.written(9).payoff() == 9);
    CHECK(word.given_to(another).written(3).payoff() == 3);
    CHECK(word.emptied().payoff() == 0);
}

TEST_CASE("a slot that changes hands goes on with its sequence") {
    const Word old = word_of(some).written(0);
    const Word taken = old.given_to(another);
    CHECK_FALSE(taken.empty());
    CHECK(taken.fingerprint() == another);
    CHECK(taken.written(0).bits() != word_of(another).bits());
    CHECK(old.emptied().empty());
    CHECK(old.emptied().bits() != 0);
}

}  // namespace
