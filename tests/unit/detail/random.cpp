// SPDX-License-Identifier: MIT
// Numbers that differ, from generator to generator, too.
#include <penstock/detail/random.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

namespace {

using penstock::detail::QuickRandom;

TEST_CASE("numbers do not repeat soon, and are of 48 bits") {
    QuickRandom random;
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 10'000; ++i) {
        const std::uint64_t number = random.next();
        CHECK(number < (std::uint64_t{1} << 48));
        seen.insert(number);
    }
    CHECK(seen.size() == 10'000);
}

TEST_CASE("each remainder comes about as often as another") {
    QuickRandom random;
    int odd = 0;
    for (int i = 0; i < 10'000; ++i) {
        odd += random.next() % 2 == 1 ? 1 : 0;
    }
    CHECK(odd > 4'000);
    CHECK(odd < 6'000);
}

TEST_CASE("generators begin at different places") {
    std::set<std::uint64_t> firsts;
    for (int i = 0; i < 100; ++i) {
        firsts.insert(QuickRandom().next());
    }
    CHECK(firsts.size() == 100);
}

}  // namespace
