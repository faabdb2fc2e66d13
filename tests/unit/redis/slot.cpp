// SPDX-License-Identifier: MIT
#include <penstock/redis/slot.hpp>

#include <doctest/doctest.h>

#include "../../support/random.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::string_view_literals;
using penstock::redis::cluster_slots;
using penstock::redis::slot_of;

TEST_CASE("a slot is the checksum that the cluster specification names") {
    static_assert(penstock::detail::crc16("123456789") == 0x31c3);
    static_assert(slot_of("123456789") == (0x31c3 & 16'383));
    CHECK(penstock::detail::crc16("") == 0);
}

// As CLUSTER KEYSLOT of a server answers.
TEST_CASE("a key without braces is hashed whole") {
    CHECK(slot_of("foo") == 12'182);
    CHECK(slot_of("bar") == 5'061);
    CHECK(slot_of("user1000") == 3'443);
    CHECK(slot_of("") == 0);
    CHECK(slot_of("\xff\x80") == 4'727);
}

TEST_CASE("of a key with braces only the text between the first two is hashed") {
    CHECK(slot_of("{user1000}.following") == 3'443);
    CHECK(slot_of("{user1000}.followers") == 3'443);
    CHECK(slot_of("foo{{bar}}zap") == 4'015);
    CHECK(slot_of("foo{{bar}}zap") == slot_of("{bar"));
    CHECK(slot_of("foo{bar}{zap}") == 5'061);
    CHECK(slot_of("\0\xff\r\n{\0}x"sv) == slot_of("\0"sv));
}

TEST_CASE("a key with nothing between its first braces, or with one brace only, is hashed whole") {
    CHECK(slot_of("foo{}{bar}") == 8'363);
    CHECK(slot_of("foo{bar") == 15'278);
    CHECK(slot_of("}{") == 12'793);
    CHECK(slot_of("a}:b") == 4'997);
    CHECK(slot_of("{}") == 15'257);
    CHECK(slot_of("{}{a}") == 13'650);
    CHECK(slot_of("{") != slot_of("}"));
}

TEST_CASE("whatever the key, the slot exists, and all slots are used") {
    support::Random random(1);
    std::vector<bool> used(cluster_slots);
    for (int round = 0; round < 300'000; ++round) {
        std::string key(random.below(20), '\0');
        for (char& byte : key) {
            byte = static_cast<char>(random.chance(20) ? random.one_of({'{', '}'}) : random.below(256));
        }
        used.at(slot_of(key)) = true;
    }
    std::size_t count = 0;
    for (const bool slot : used) {
        count += slot ? 1 : 0;
    }
    CHECK(count == cluster_slots);
    static_assert(noexcept(slot_of("")));
}

}  // namespace
