// SPDX-License-Identifier: MIT
// A tuple that stays trivially copyable.
#include <penstock/detail/pack.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace {

using penstock::detail::get;
using penstock::detail::Pack;

TEST_CASE("elements of one type are told apart by their place") {
    Pack<int, int> pair(1, 2);
    get<1>(pair) = 3;
    CHECK(get<0>(pair) == 1);
    CHECK(get<1>(pair) == 3);
    CHECK(pair == Pack<int, int>(1, 3));
    CHECK(pair != Pack<int, int>(1, 2));
}

TEST_CASE("a pack of trivially copyable elements is trivially copyable and no larger") {
    static_assert(std::is_trivially_copyable_v<Pack<std::uint64_t, std::uint64_t>>);
    static_assert(sizeof(Pack<std::uint64_t, std::uint64_t>) == 16);
    static_assert(get<1>(Pack<int, std::string_view>(1, "one")) == "one");
}

}  // namespace
