// SPDX-License-Identifier: MIT
// Windows on a grid, and the counts of the last two.
#include <penstock/detail/window.hpp>

#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>

#include "../../support/client.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>

namespace {

using namespace std::chrono_literals;
using penstock::FixedWindow;
using penstock::Micros;
using penstock::SlidingWindow;
using penstock::detail::Counts;
using penstock::detail::WindowGrid;
using penstock::detail::WindowState;

/// A client that took `previous` and then `current`, the last of it at `stamp`.
WindowState state(std::uint64_t window, std::uint64_t stamp, std::uint64_t previous, std::uint64_t current) {
    Counts counts(WindowState{}, window, 0, stamp);
    counts.previous = previous;
    counts.current = current;
    return counts.state(stamp, penstock::detail::WindowSlowness());
}

TEST_CASE("windows begin at multiples of their length, moved by any shift") {
    CHECK(WindowGrid(60, 0).elapsed(0) == 0);
    CHECK(WindowGrid(60, 0).elapsed(59) == 59);
    CHECK(WindowGrid(60, 0).elapsed(60) == 0);
    CHECK(WindowGrid(60, 10).elapsed(10) == 0);
    CHECK(WindowGrid(60, 10).elapsed(9) == 59);
    CHECK(WindowGrid(60, -10).elapsed(50) == 0);
    CHECK(WindowGrid(60, 130).elapsed(10) == 0);
}

TEST_CASE("counts move one window back, then vanish") {
    const WindowState taken = state(60, 30, 5, 7);
    CHECK(Counts(taken, 60, 0, 59).previous == 5);
    CHECK(Counts(taken, 60, 0, 59).current == 7);
    CHECK(Counts(taken, 60, 0, 60).previous == 7);
    CHECK(Counts(taken, 60, 0, 60).current == 0);
    CHECK(Counts(taken, 60, 0, 119).previous == 7);
    CHECK(Counts(taken, 60, 0, 120).previous == 0);
}

TEST_CASE("a clock that goes back stays at the stamp") {
    const Counts counts(state(60, 130, 5, 7), 60, 0, 20);
    CHECK(counts.time == 130);
    CHECK(counts.elapsed == 10);
    CHECK(counts.current == 7);
    CHECK(counts.until(60) == std::chrono::microseconds{160});  // from 20 to the window's end at 180
}

TEST_CASE("what is carried over is rounded up") {
    CHECK(Counts(state(3, 0, 0, 3), 3, 0, 4).carried() == 2);
    CHECK(Counts(state(3, 0, 0, 1), 3, 0, 5).carried() == 1);
    CHECK(Counts(state(3, 0, 0, 1), 3, 0, 6).carried() == 0);
}

TEST_CASE("under another length the counts become one, as they weighed at the stamp") {
    // At 75 a quarter of the window has passed: 3/4 of 10 is 7.5, rounded up, and 2.
    const Counts counts(state(60, 75, 10, 2), 100, 0, 80);
    CHECK(counts.previous == 0);
    CHECK(counts.current == 10);
    CHECK(Counts(state(60, 75, 10, 2), 100, 0, 100).previous == 10);
}

TEST_CASE("a count is added only as far as the bound") {
    Counts counts(state(60, 30, 0, 7), 60, 0, 30);
    counts.add_up_to(10, 2);
    CHECK(counts.current == 9);
    counts.add_up_to(10, ~std::uint64_t{0});
    CHECK(counts.current == 10);
    counts.add_up_to(5, 1);
    CHECK(counts.current == 10);
}

TEST_CASE("a state keeps the largest numbers there can be") {
    constexpr std::uint64_t most = (std::uint64_t{1} << 40) + 1;
    constexpr std::uint64_t window = std::uint64_t{1} << 45;
    constexpr std::uint64_t stamp = (std::uint64_t{1} << 53) - 1;
    const Counts counts(state(window, stamp, most, most), window, 0, 0);
    CHECK(counts.time == stamp);
    CHECK(counts.previous == most);
    CHECK(counts.current == most);
}

template <class Algorithm>
constexpr std::uint64_t windows_that_count = 1;

template <>
constexpr std::uint64_t windows_that_count<SlidingWindow> = 2;

TEST_CASE_TEMPLATE("a state says when nothing counts any more, at the latest", Algorithm, FixedWindow, SlidingWindow) {
    constexpr Micros longest = windows_that_count<Algorithm> * (std::uint64_t{1} << 24);  // 10 s, rounded up
    support::Client<Algorithm> client(Algorithm{.limit = 5, .window = 10s});
    CHECK(Algorithm::fresh_at(client.state()) == 0);
    CHECK(client.check(1s, 4).allowed);
    CHECK(Algorithm::fresh_at(client.state()) == 1'000'000 + longest);
    CHECK(client.refund(9s, 1).allowed);  // gives back, and is not the last time that something was taken
    CHECK(Algorithm::fresh_at(client.state()) == 1'000'000 + longest);
    CHECK(client.charge(8s, 1).allowed);
    CHECK(Algorithm::fresh_at(client.state()) == 8'000'000 + longest);
    CHECK(client.refund(9s, 5).allowed);
    CHECK(Algorithm::fresh_at(client.state()) == 0);
}

TEST_CASE_TEMPLATE("the longest window that a client was counted in decides when it is fresh",
                   Algorithm,
                   FixedWindow,
                   SlidingWindow) {
    typename Algorithm::State state;
    const auto day = penstock::plan(Algorithm{.limit = 5, .window = 24h});
    const auto second = penstock::plan(Algorithm{.limit = 5, .window = 1s});
    CHECK(Algorithm::step(state, day, 0, 1, 0).allowed);
    CHECK(Algorithm::step(state, second, 1000, 1, 0).allowed);
    CHECK(Algorithm::fresh_at(state) >= 86'400'000'000);
}

TEST_CASE_TEMPLATE("of two clients the one that took more of its limit is paid off later",
                   Algorithm,
                   FixedWindow,
                   SlidingWindow) {
    typename Algorithm::State some;
    typename Algorithm::State all;
    const auto hour = penstock::plan(Algorithm{.limit = 100, .window = 1h});
    CHECK(Algorithm::step(all, hour, 0, 100, 0).allowed);
    CHECK(Algorithm::step(some, hour, 1'000'000'000, 1, 0).allowed);
    CHECK(Algorithm::paid_off_at(all) > Algorithm::paid_off_at(some));
}

}  // namespace
