// SPDX-License-Identifier: MIT
// Several limits on one key.
#include "../support/expect.hpp"
#include "../support/storages.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::allowed_of;
using expect::rejected;
using penstock::AllOf;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::per_hour;
using penstock::TokenBucket;

TEST_CASE_TEMPLATE("a rejection takes nothing from the other limits", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{AllOf{TokenBucket{.capacity = 10, .refill = per_hour(1)}, FixedWindow{.limit = 3, .window = 60s}},
                    Storage::fresh(),
                    clock};
    for (const auto now : {0s, 60s, 120s}) {
        clock.set(now);
        CHECK(allowed_of(50, limiter, "key") == 3);
    }
    clock.set(180s);
    CHECK(limiter.check("key") == allowed(0));
    CHECK(limiter.check("key") == rejected(3420s).limit(10));
}

TEST_CASE_TEMPLATE("a rejection by both limits reports the longer wait", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{
        AllOf{FixedWindow{.limit = 1, .window = 10s}, FixedWindow{.limit = 1, .window = 60s}}, Storage::fresh(), clock};
    CHECK(limiter.check("key") == allowed(0));
    clock.set(1s);
    CHECK(limiter.check("key") == rejected(59s).limit(1));
    clock.set(10s);
    CHECK(limiter.check("key") == rejected(50s));
}

TEST_CASE_TEMPLATE("the slower limit is remembered when the faster one is fresh again",
                   Storage,
                   PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{AllOf{TokenBucket{.capacity = 10, .refill = per_hour(1)}, FixedWindow{.limit = 3, .window = 60s}},
                    Storage::fresh(),
                    clock};
    CHECK(limiter.check("key", 3) == allowed(0).limit(3).reset_after(60s));
    clock.set(600s);
    CHECK(limiter.check("key", 3) == allowed(0));
    clock.set(1200s);
    CHECK(limiter.check("key", 3) == allowed(0));
    clock.set(1800s);
    CHECK(limiter.check("key", 3) == rejected(5400s).limit(10).remaining(1));
}

}  // namespace
