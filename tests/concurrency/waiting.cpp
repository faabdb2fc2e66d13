// SPDX-License-Identifier: MIT
// Threads that wait for their turn: nobody is let in too early, nobody twice.
#include "../support/expect.hpp"
#include "../support/storages.hpp"
#include "../support/threads.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::per_second;
using penstock::Reservation;
using penstock::SteadyClock;
using penstock::TokenBucket;
using std::chrono::microseconds;
using Waits = std::vector<microseconds>;

/// Steady time, and what the calling thread has read last.
struct NotingClock {
    microseconds now() const noexcept { return last = SteadyClock{}.now(); }

    static inline thread_local microseconds last{0};
};

TEST_CASE_TEMPLATE("waiting threads do not overfill a window", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr microseconds window = 200ms;
    constexpr std::size_t waiters = 9;
    Limiter limiter{FixedWindow{.limit = 3, .window = window}, Storage::fresh(), NotingClock{}};
    const auto windows = threads::results_of(waiters, [&](std::size_t) {
        const Decision decision = limiter.wait_for("key", 10s);
        // The window it counted in, which may be later than the one in which the clock was read.
        return decision.allowed ? (NotingClock::last + decision.reset_after) / window : 0;
    });
    std::map<std::int64_t, int> admitted;
    for (const auto number : windows) {
        ++admitted[number];
    }
    CHECK(!admitted.contains(0));
    CHECK(admitted.size() >= 3);
    CHECK(std::all_of(admitted.begin(), admitted.end(), [](const auto& entry) { return entry.second <= 3; }));
}

TEST_CASE_TEMPLATE("waiting threads each get a turn of their own", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr std::size_t burst = 5;
    constexpr microseconds turn = 10ms;
    Limiter limiter{TokenBucket{.capacity = burst, .refill = penstock::per(1, turn)}, Storage::fresh()};
    const microseconds start = SteadyClock{}.now();
    Waits times = threads::results_of(2 * burst, [&](std::size_t) {
        const bool allowed = limiter.wait_for("key", 10s).allowed;
        return allowed ? SteadyClock{}.now() - start : -1us;
    });
    std::sort(times.begin(), times.end());
    for (std::size_t i = 0; i < times.size(); ++i) {
        CHECK(times[i] >= turn * (i < burst ? 0 : i - burst + 1));
    }
}

TEST_CASE_TEMPLATE("each reservation has a turn of its own", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr std::uint64_t burst = 100;
    Limiter limiter{TokenBucket{.capacity = burst, .refill = per_second(1000)}, Storage::fresh(), ManualClock{}};
    const auto waits = threads::results_of(4, [&](std::size_t) {
        Waits mine;
        for (std::uint64_t i = 0; i < burst; ++i) {
            if (const Reservation reservation = limiter.reserve("key", 1h); reservation) {
                mine.push_back(reservation.wait);
            }
        }
        return mine;
    });
    Waits all = threads::joined(waits);
    std::sort(all.begin(), all.end());
    Waits expected(burst, 0us);
    for (std::uint64_t in_debt = 1; in_debt <= burst; ++in_debt) {
        expected.push_back(in_debt * 1ms);
    }
    CHECK(all == expected);
    CHECK(limiter.check("key") == expect::rejected(101ms));
}

}  // namespace
