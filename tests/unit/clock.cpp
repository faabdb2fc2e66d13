// SPDX-License-Identifier: MIT
#include <penstock/clock.hpp>

#include <penstock/concepts.hpp>

#include <doctest/doctest.h>

#include "../support/print.hpp"

#include <algorithm>
#include <chrono>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using penstock::CachedClock;
using penstock::CoarseClock;
using penstock::ManualClock;
using penstock::SteadyClock;
using penstock::SystemClock;
using std::chrono::microseconds;

microseconds wall_time() {
    return std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch());
}

TEST_CASE_TEMPLATE("a running clock never goes back", AnyClock, SteadyClock, CoarseClock, SystemClock) {
    const AnyClock clock;
    microseconds before = clock.now();
    for (int reading = 0; reading < 100'000; ++reading) {
        const microseconds now = clock.now();
        REQUIRE(now >= before);
        before = now;
    }
}

TEST_CASE_TEMPLATE(
    "every clock meets the concept", AnyClock, SteadyClock, CoarseClock, SystemClock, CachedClock, ManualClock) {
    CHECK(penstock::Clock<AnyClock>);
    CHECK(std::is_default_constructible_v<AnyClock>);
}

TEST_CASE("a clock without a time of its own takes no room in a limiter") {
    CHECK(std::is_empty_v<SteadyClock>);
    CHECK(std::is_empty_v<CoarseClock>);
}

TEST_CASE("the steady clock counts microseconds since the epoch of std::chrono::steady_clock") {
    const auto before = std::chrono::steady_clock::now().time_since_epoch();
    const microseconds now = SteadyClock{}.now();
    const auto after = std::chrono::steady_clock::now().time_since_epoch();
    CHECK(now >= std::chrono::floor<microseconds>(before));
    CHECK(now <= after);
}

TEST_CASE("the coarse clock is the steady clock, a little late") {
    microseconds least_lateness = 1h;  // a busy machine adds what it does between two readings
    for (int reading = 0; reading < 1000; ++reading) {
        const microseconds coarse = CoarseClock{}.now();
        const microseconds steady = SteadyClock{}.now();
        REQUIRE(coarse <= steady);
        least_lateness = (std::min)(least_lateness, steady - coarse);
    }
    CHECK(least_lateness < 20ms);
}

TEST_CASE("the coarse clock moves") {
    const microseconds start = CoarseClock{}.now();
    const microseconds deadline = SteadyClock{}.now() + 10s;
    while (CoarseClock{}.now() == start && SteadyClock{}.now() < deadline) {
    }
    CHECK(CoarseClock{}.now() > start);
}

TEST_CASE("the system clock tells the wall time") {
    const SystemClock clock;
    const microseconds difference = clock.now() - wall_time();
    CHECK(difference > -2s);
    CHECK(difference < 2s);
}

TEST_CASE("the system clock runs at the pace of steady time") {
    const SystemClock clock;
    const microseconds steady_before = SteadyClock{}.now();
    const microseconds start = clock.now();
    while (SteadyClock{}.now() - steady_before < 2ms) {
    }
    const microseconds passed = clock.now() - start;
    const microseconds steady_passed = SteadyClock{}.now() - steady_before;
    CHECK(passed >= 1ms);
    CHECK(passed <= steady_passed);
}

TEST_CASE("copies of a system clock agree on their epoch") {
    const SystemClock clock;
    const SystemClock copy = clock;
    const microseconds before = clock.now();
    const microseconds now = copy.now();
    CHECK(now >= before);
    CHECK(now <= clock.now());
}

TEST_CASE("a manual clock starts at zero and stands until it is moved") {
    const ManualClock clock;
    CHECK(clock.now() == 0us);
    clock.set(5s);
    CHECK(clock.now() == 5s);
    CHECK(clock.now() == 5s);
    clock.advance(1us);
    CHECK(clock.now() == 5'000'001us);
}

TEST_CASE("a manual clock can go back, and before its epoch") {
    const ManualClock clock;
    clock.set(5s);
    clock.advance(-7s);
    CHECK(clock.now() == -2s);
    clock.set((microseconds::min)());
    CHECK(clock.now() == (microseconds::min)());
    clock.set((microseconds::max)());
    CHECK(clock.now() == (microseconds::max)());
}

TEST_CASE("a cached clock starts at the steady time of its making and stands until the next tick") {
    const microseconds before = SteadyClock{}.now();
    const CachedClock clock;
    const microseconds start = clock.now();
    CHECK(start >= before);
    CHECK(start <= SteadyClock{}.now());

    while (SteadyClock{}.now() - start < 1ms) {
    }
    CHECK(clock.now() == start);
    clock.tick();
    CHECK(clock.now() >= start + 1ms);
    CHECK(clock.now() <= SteadyClock{}.now());
}

TEST_CASE("a cached clock takes over what the host has read") {
    const CachedClock clock;
    clock.set(42s);
    CHECK(clock.now() == 42s);
}

TEST_CASE_TEMPLATE("copies of a handle share one time, others do not", Handle, ManualClock, CachedClock) {
    const Handle clock;
    const Handle copy = clock;
    Handle assigned;
    assigned = clock;
    const Handle other;
    const microseconds time_of_other = other.now();

    clock.set(5s);
    CHECK(copy.now() == 5s);
    CHECK(assigned.now() == 5s);
    copy.set(7s);
    CHECK(clock.now() == 7s);
    CHECK(assigned.now() == 7s);
    CHECK(other.now() == time_of_other);
}

TEST_CASE_TEMPLATE("a copy outlives the handle it was made of", Handle, ManualClock, CachedClock) {
    const Handle survivor = [] {
        const Handle clock;
        clock.set(5s);
        return Handle(clock);
    }();
    CHECK(survivor.now() == 5s);
    survivor.set(6s);
    CHECK(survivor.now() == 6s);
}

}  // namespace
