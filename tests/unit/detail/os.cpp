// SPDX-License-Identifier: MIT
// What is asked of the operating system.
#include <penstock/detail/os.hpp>

#include <doctest/doctest.h>

#include <chrono>

namespace {

using namespace penstock::detail;
using namespace std::chrono_literals;

std::chrono::microseconds steady() {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

TEST_CASE("random bits differ from call to call") {
    CHECK(random_bits() != random_bits());
}

TEST_CASE("coarse time is steady time as of the last tick") {
    const std::chrono::microseconds coarse = coarse_steady_now();
    CHECK(coarse <= steady());
    CHECK(coarse > steady() - 1s);
}

TEST_CASE("a sleep is at least as long as asked, and none for no time") {
    const std::chrono::microseconds before = steady();
    penstock::detail::sleep_for(2ms);
    CHECK(steady() - before >= 2ms);
    penstock::detail::sleep_for(0us);
    penstock::detail::sleep_for(-1h);
}

TEST_CASE("a thread that waits may say so at any time") {
    cpu_relax();
    yield_thread();
}

}  // namespace
