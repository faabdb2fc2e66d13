// SPDX-License-Identifier: MIT
// A limiter that gets new parameters while clients are under way: what they have used stays used.
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
using penstock::per_hour;
using penstock::TokenBucket;

TEST_CASE_TEMPLATE("lowering the limit clamps at zero", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 100, .window = 60s}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 50) == allowed(50));
    limiter.configure({.limit = 2, .window = 60s});
    clock.set(1s);
    CHECK(limiter.check("key") == rejected(59s).limit(2).remaining(0));
    limiter.configure({.limit = 60, .window = 60s});
    CHECK(limiter.check("key") == allowed(9).limit(60));
}

TEST_CASE_TEMPLATE("configuring the same limit again gives nobody a full bucket",
                   Storage,
                   PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr TokenBucket bucket{.capacity = 5, .refill = per_hour(1)};
    const ManualClock clock;
    Limiter limiter{bucket, Storage::fresh(), clock};
    CHECK(limiter.check("key", 5) == allowed(0));
    for (int i = 0; i < 100; ++i) {
        limiter.configure(bucket);
        CHECK(limiter.check("key") == rejected(3600s));
    }
}

TEST_CASE_TEMPLATE("a new limit reaches clients already known", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 100, .window = 60s}, Storage::fresh(), clock};
    CHECK(limiter.check("a", 10) == allowed(90));
    limiter.configure({.limit = 5, .window = 60s});
    clock.set(1s);
    CHECK(limiter.check("a") == rejected().limit(5).remaining(0));
    CHECK(limiter.check("b") == allowed(4).limit(5));
}

TEST_CASE_TEMPLATE("rejections do not use up a later raise", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 10, .window = 1h}, Storage::fresh(), clock};
    CHECK(allowed_of(50, limiter, "key") == 10);
    limiter.configure({.limit = 20, .window = 1h});
    CHECK(allowed_of(10, limiter, "key") == 10);
    CHECK(limiter.check("key") == rejected());
}

TEST_CASE_TEMPLATE("a raise and a reset let a blocked client pass at once", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 10, .window = 1h}, Storage::fresh(), clock};
    CHECK(allowed_of(12, limiter, "key") == 10);
    limiter.configure({.limit = 20, .window = 1h});
    CHECK(limiter.check("key") == allowed(9));
    CHECK(limiter.check("key", 9) == allowed(0));
    CHECK(limiter.check("key") == rejected());
    CHECK(limiter.check("key") == rejected());
    limiter.reset("key");
    CHECK(limiter.check("key") == allowed(19));
}

}  // namespace
