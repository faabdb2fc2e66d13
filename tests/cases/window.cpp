// SPDX-License-Identifier: MIT
// Windows: their boundaries, their weights, and the length that was configured.
#include "../support/expect.hpp"
#include "../support/storages.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::allowed_of;
using expect::rejected;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::SlidingWindow;

TEST_CASE_TEMPLATE("a sliding window keeps fractions at low rates", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{SlidingWindow{.limit = 1, .window = 1s}, Storage::fresh(), clock};
    CHECK(limiter.check("key") == allowed(0));
    CHECK(limiter.check("key") == rejected(2s));
    clock.set(1500ms);
    CHECK(limiter.check("key") == rejected(500ms));
    clock.set(1'999'999us);
    CHECK(limiter.check("key") == rejected(1us));
    clock.set(2s);
    CHECK(limiter.check("key") == allowed(0));
}

/// Hundred around the end of a window, then hundred more in the next: how many of those pass.
template <class Limiter>
auto second_burst(Limiter& limiter, const ManualClock& clock) {
    CHECK(limiter.check("key") == allowed(99));
    clock.set(900ms);
    CHECK(limiter.check("key", 99) == allowed(0));
    clock.set(1100ms);
    return allowed_of(100, limiter, "key");
}

TEST_CASE_TEMPLATE("a sliding window bounds the burst at a boundary", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{SlidingWindow{.limit = 100, .window = 1s}, Storage::fresh(), clock};
    CHECK(second_burst(limiter, clock) == 10);
    CHECK(limiter.check("key") == rejected(10ms));
}

TEST_CASE_TEMPLATE("a fixed window admits its limit on either side of a boundary",
                   Storage,
                   PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 100, .window = 1s}, Storage::fresh(), clock};
    CHECK(second_burst(limiter, clock) == 100);
    CHECK(limiter.check("key") == rejected(900ms));
}

TEST_CASE_TEMPLATE("the wait on a sliding window with a repeating fraction is rounded up",
                   Storage,
                   PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{SlidingWindow{.limit = 3, .window = 1s}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 3) == allowed(0));
    clock.set(1s);
    CHECK(limiter.check("key") == rejected(333'334us));
    clock.set(1'333'333us);
    CHECK(limiter.check("key") == rejected(1us));
    clock.set(1'333'334us);
    CHECK(limiter.check("key") == allowed(0));
}

TEST_CASE_TEMPLATE("the end of a window never gives a wait of zero or less", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 1, .window = 60s}, Storage::fresh(), clock};
    CHECK(limiter.check("key") == allowed(0));
    clock.set(59'999'999us);
    CHECK(limiter.check("key") == rejected(1us));
    clock.set(60s);
    CHECK(limiter.check("key") == allowed(0).retry_after(0us));
}

TEST_CASE_TEMPLATE("windows do not drift with the traffic", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 50, .window = 24h}, Storage::fresh(), clock};
    clock.set(86'340s);
    CHECK(limiter.check("key", 50) == allowed(0));
    clock.set(86'460s);
    CHECK(limiter.check("key", 50) == allowed(0));
    clock.set(172'740s);
    CHECK(limiter.check("key") == rejected(60s));
    clock.set(172'800s);
    CHECK(limiter.check("key") == allowed(49));
}

TEST_CASE_TEMPLATE("the configured window is the one used", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter fixed{FixedWindow{.limit = 5, .window = 600s}, Storage::fresh(), clock};
    Limiter sliding{SlidingWindow{.limit = 5, .window = 600s}, Storage::fresh(), clock};
    CHECK(fixed.check("key", 5) == allowed(0));
    CHECK(sliding.check("key", 5) == allowed(0));
    clock.set(60s);
    CHECK(fixed.check("key") == rejected(540s));
    CHECK(sliding.check("key") == rejected(660s));
    clock.set(599s);
    CHECK(fixed.check("key") == rejected(1s));
    CHECK(sliding.check("key") == rejected(121s));
}

}  // namespace
