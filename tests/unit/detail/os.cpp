// SPDX-License-Identifier: MIT
// What is asked of the operating system.
#include <penstock/detail/os.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>

#include <sys/time.h>

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

volatile std::sig_atomic_t interruptions = 0;

TEST_CASE("signals do not shorten a sleep") {
    const auto handler = std::signal(SIGALRM, [](int) { interruptions = interruptions + 1; });
    const std::chrono::microseconds before = steady();
    const itimerval every_5_ms{.it_interval = {.tv_sec = 0, .tv_usec = 5000},
                               .it_value = {.tv_sec = 0, .tv_usec = 5000}};
    setitimer(ITIMER_REAL, &every_5_ms, nullptr);
    penstock::detail::sleep_for(40ms);
    const itimerval off{};
    setitimer(ITIMER_REAL, &off, nullptr);
    CHECK(steady() - before >= 40ms);
    CHECK(interruptions > 0);
    std::signal(SIGALRM, handler);
}

TEST_CASE("a thread that waits may say so at any time") {
    cpu_relax();
    yield_thread();
}

}  // namespace
