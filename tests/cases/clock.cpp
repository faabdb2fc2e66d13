// SPDX-License-Identifier: MIT
// Clocks that go back, differ from each other, or have just begun.
#include "../support/expect.hpp"
#include "../support/storages.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::per;
using penstock::per_second;
using penstock::TokenBucket;

TEST_CASE_TEMPLATE("a clock that goes back and forth mints no tokens", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 10, .refill = per_second(1)}, Storage::fresh(), clock};
    clock.set(10s);
    CHECK(limiter.check("key", 10) == allowed(0));
    for (int i = 0; i < 100; ++i) {
        clock.set(0s);
        CHECK(limiter.check("key") == rejected(11s));
        clock.set(10s);
        CHECK(limiter.check("key") == rejected(1s));
    }
}

TEST_CASE_TEMPLATE("retry_after counts from the clock it is given", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 5, .refill = per_second(2)}, Storage::fresh(), clock};
    clock.set(100s);
    CHECK(limiter.check("key", 5) == allowed(0));
    clock.set(90s);
    CHECK(limiter.check("key") == rejected(10'500'000us));
    clock.set(100'499'999us);
    CHECK(limiter.check("key") == rejected(1us));
    clock.set(100'500'000us);
    CHECK(limiter.check("key") == allowed(0));
}

TEST_CASE_TEMPLATE("a step back is not elapsed time", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 10, .refill = per_second(1)}, Storage::fresh(), clock};
    clock.set(100s);
    CHECK(limiter.check("key", 10) == allowed(0));
    clock.set(90s);
    CHECK(limiter.check("key") == rejected(11s));
}

TEST_CASE_TEMPLATE("callers with different clocks share a key", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 20, .refill = per_second(1)}, Storage::fresh(), clock};
    clock.set(100s);
    CHECK(limiter.check("key", 10) == allowed(10));
    clock.set(89s);
    CHECK(limiter.check("key", 10) == allowed(0));
    clock.set(101s);
    CHECK(limiter.check("key") == allowed(0));
    clock.set(90s);
    CHECK(limiter.check("key") == rejected(12s));
}

TEST_CASE_TEMPLATE("a fresh bucket is full whatever the clock reads", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 1, .refill = per(1, 10'000s)}, Storage::fresh(), clock};
    CHECK(limiter.check("key") == allowed(0));
    CHECK(limiter.check("key") == rejected(10'000s));
    clock.set(1us);
    CHECK(limiter.check("another key") == allowed(0));
}

}  // namespace
