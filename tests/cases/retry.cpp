// SPDX-License-Identifier: MIT
// Waits that other limiters told wrongly: zero, a whole period, or until everything is refilled.
#include "../support/expect.hpp"
#include "../support/storages.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::per;
using penstock::per_second;
using penstock::SlidingWindow;
using penstock::TokenBucket;

TEST_CASE_TEMPLATE("a short wait is never zero", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter thousand{TokenBucket{.capacity = 1000, .refill = per_second(1000)}, Storage::fresh(), clock};
    CHECK(thousand.check("key", 1000) == allowed(0));
    CHECK(thousand.check("key") == rejected(1000us));

    Limiter fastest{TokenBucket{.capacity = 10, .refill = per_second(10'000'000)}, Storage::fresh(), clock};
    CHECK(fastest.check("key", 10) == allowed(0));
    CHECK(fastest.check("key") == rejected(1us));
}

TEST_CASE_TEMPLATE("retry_after is the wait until this cost fits", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter slow{TokenBucket{.capacity = 1, .refill = per(1, 1500ms)}, Storage::fresh(), clock};
    CHECK(slow.check("key") == allowed(0));
    CHECK(slow.check("key") == rejected(1'500'000us));

    Limiter quick{TokenBucket{.capacity = 10, .refill = per_second(10)}, Storage::fresh(), clock};
    CHECK(quick.check("key", 10) == allowed(0));
    CHECK(quick.check("key") == rejected(100'000us));
}

TEST_CASE_TEMPLATE("the wait on a sliding window is exact", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{SlidingWindow{.limit = 10, .window = 60s}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 10) == allowed(0));
    clock.set(60s);
    CHECK(limiter.check("key") == rejected(6s));
    clock.set(65'999'999us);
    CHECK(limiter.check("key") == rejected(1us));
    clock.set(66s);
    CHECK(limiter.check("key") == allowed(0));
}

TEST_CASE_TEMPLATE("retry_after counts the token in progress", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 1, .refill = per_second(1)}, Storage::fresh(), clock};
    CHECK(limiter.check("key") == allowed(0));
    clock.set(200ms);
    CHECK(limiter.check("key") == rejected(800ms));

    Limiter slow{TokenBucket{.capacity = 2, .refill = per(1, 3s)}, Storage::fresh(), clock};
    clock.set(0s);
    CHECK(slow.check("key", 2) == allowed(0));
    clock.set(1s);
    CHECK(slow.check("key") == rejected(2s));
}

TEST_CASE_TEMPLATE("retry_after is not the time until the bucket is full", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 10, .refill = per_second(1)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 10) == allowed(0));
    CHECK(limiter.check("key") == rejected(1s).reset_after(10s));
}

TEST_CASE_TEMPLATE("reset_after counts every unit taken", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 10, .refill = per(1, 6s)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 7) == allowed(3).reset_after(42s));
    clock.set(12s);
    CHECK(limiter.check("key", 6) == rejected(6s).remaining(5));
}

TEST_CASE_TEMPLATE("reset_after is there while a window runs", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 50, .window = 60s}, Storage::fresh(), clock};
    clock.set(11s);
    CHECK(limiter.check("key") == allowed(49).reset_after(49s));
}

}  // namespace
