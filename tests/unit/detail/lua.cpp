// SPDX-License-Identifier: MIT
#include <penstock/detail/lua.hpp>

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::FixedWindow;
using penstock::per;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using penstock::detail::LuaTwin;

namespace {

constexpr std::array<LuaTwin, 3> twins{TokenBucket::Lua::twin, SlidingWindow::Lua::twin, FixedWindow::Lua::twin};

std::size_t count(std::string_view text, char letter) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), letter));
}

std::size_t numbers_of(std::string_view format) {
    return count(format, 'B') + count(format, 'I');
}

template <class Algorithm>
auto numbers(const Algorithm& algorithm, penstock::Micros phase) {
    return Algorithm::Lua::numbers(penstock::plan(algorithm), phase);
}

}  // namespace

TEST_CASE("what is stored has a place in both formats, the tell-tale byte first") {
    for (const LuaTwin& twin : twins) {
        CHECK(numbers_of(twin.narrow) == count(twin.state, '@'));
        CHECK(numbers_of(twin.wide) == count(twin.state, '@'));
        CHECK(twin.narrow.front() == 'B');
        CHECK(twin.wide.front() == 'B');
        CHECK(twin.state.substr(0, 6) == "slow@,");
    }
}

TEST_CASE("every number of a plan has a variable") {
    CHECK(count(TokenBucket::Lua::twin.plan, '@') == numbers(TokenBucket{1, per(1, 1s)}, 0).size());
    CHECK(count(SlidingWindow::Lua::twin.plan, '@') == numbers(SlidingWindow{1, 1s}, 0).size());
    CHECK(count(FixedWindow::Lua::twin.plan, '@') == numbers(FixedWindow{1, 1s}, 0).size());
}

TEST_CASE("the numbers are those of the reduced plan") {
    CHECK(numbers(TokenBucket{20, per(10, 1s)}, 7) == std::array<std::uint64_t, 4>{20, 1, 100'000, 17});
    CHECK(numbers(SlidingWindow{5, 1s}, 7) == std::array<std::uint64_t, 4>{5, 1'000'000, 0, 64 + 20});
    CHECK(numbers(SlidingWindow{5, 1s, penstock::Align::staggered}, 7) ==
          std::array<std::uint64_t, 4>{5, 1'000'000, 7, 64 + 20});
    CHECK(numbers(FixedWindow{5, 1s, penstock::Align::staggered, -3us}, 7) ==
          std::array<std::uint64_t, 5>{5, 1'000'000, 7, (std::uint64_t{1} << 45) - 3, 128 + 20});
}

TEST_CASE("the numbers of several plans stand one after the other") {
    const AllOf both{TokenBucket{20, per(10, 1s)}, SlidingWindow{5, 1s}};
    CHECK(numbers(both, 0) == std::array<std::uint64_t, 8>{20, 1, 100'000, 17, 5, 1'000'000, 0, 64 + 20});
    CHECK(decltype(both)::Lua::twins.size() == 2);
}
