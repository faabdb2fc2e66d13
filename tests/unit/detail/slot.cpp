// SPDX-License-Identifier: MIT
// A slot: its record is whole or not read at all.
#include <penstock/detail/slot.hpp>
#include <penstock/detail/threads.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using penstock::detail::Threads;

template <class Record>
using Slot = penstock::detail::Slot<Record, Threads>;

/// Of a size that is no multiple of a word.
struct Name {
    std::array<std::uint8_t, 13> bytes{};

    friend bool operator==(const Name&, const Name&) = default;
};

using Word = Slot<Name>::Word;

constexpr Name ours{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}};
constexpr Word of_a_client = Word().given_to(Word::fingerprint_of(5));

TEST_CASE("a slot is a multiple of 32 bytes, two to a cache line for a small record") {
    static_assert(sizeof(Slot<std::array<std::uint64_t, 3>>) == 32);
    static_assert(sizeof(Slot<std::array<std::uint64_t, 7>>) == 64);
    static_assert(sizeof(Slot<std::array<std::uint64_t, 9>>) == 96);
    static_assert(sizeof(Slot<std::array<std::uint64_t, 15>>) == 128);
    static_assert(alignof(Slot<Name>) == 32);
}

TEST_CASE("what was published is read back, to the last byte") {
    Slot<Name> slot;
    CHECK(slot.load().empty());
    REQUIRE(slot.exchange(Word(), of_a_client.lock()));
    slot.publish(of_a_client.written(3), ours);
    Name copy;
    CHECK(slot.read(slot.load(), copy));
    CHECK(copy == ours);
    CHECK(slot.load().payoff() == 3);
}

TEST_CASE("a locked slot is not read, and nobody else gets it") {
    Slot<Name> slot;
    REQUIRE(slot.exchange(Word(), of_a_client.lock()));
    Name copy;
    CHECK_FALSE(slot.read(slot.load(), copy));
    CHECK_FALSE(slot.exchange(Word(), of_a_client.lock()));
    slot.store(Word());
    CHECK(slot.exchange(Word(), of_a_client.lock()));
}

TEST_CASE("a slot that was written since its word was loaded is not read") {
    Slot<Name> slot;
    slot.publish(of_a_client, ours);
    const Word before = slot.load();
    slot.publish(before.written(0), ours);
    Name copy;
    CHECK_FALSE(slot.read(before, copy));
    CHECK_FALSE(slot.exchange(before, before.lock()));
}

}  // namespace
