// SPDX-License-Identifier: MIT
// What is left: counted after this request, never below zero, touched by no rejection, and not made up by a refund.
#include "../support/expect.hpp"
#include "../support/storages.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::per_hour;
using penstock::per_second;
using penstock::SlidingWindow;
using penstock::TokenBucket;

template <class Storage, class Algorithm>
void check_that_a_rejected_cost_burns_nothing(const Algorithm& of_ten_per_minute) {
    const ManualClock clock;
    Limiter limiter{of_ten_per_minute, Storage::fresh(), clock};
    CHECK(limiter.check("key", 8) == allowed(2));
    CHECK(limiter.check("key", 5) == rejected().remaining(2));
    CHECK(limiter.check("key") == allowed(1));
}

TEST_CASE_TEMPLATE("a rejected cost burns nothing", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    check_that_a_rejected_cost_burns_nothing<Storage>(FixedWindow{.limit = 10, .window = 60s});
    check_that_a_rejected_cost_burns_nothing<Storage>(SlidingWindow{.limit = 10, .window = 60s});
    check_that_a_rejected_cost_burns_nothing<Storage>(TokenBucket{.capacity = 10, .refill = penstock::per_minute(10)});
}

TEST_CASE_TEMPLATE("a charge into debt stays bounded and unsigned", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 50, .refill = per_second(50)}, Storage::fresh(), clock};
    CHECK(limiter.charge("key", 80) == rejected(600ms).remaining(0));
    CHECK(limiter.check("key") == rejected(620ms).remaining(0));
    CHECK(limiter.charge("key", 1000) == rejected(1s).remaining(0));
    CHECK(limiter.check("key") == rejected(1020ms).remaining(0));
}

TEST_CASE_TEMPLATE("remaining counts this request and stops at zero", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 3, .window = 60s}, Storage::fresh(), clock};
    for (std::uint64_t left = 3; left-- > 0;) {
        CHECK(limiter.check("key") == allowed(left));
    }
    CHECK(limiter.check("key") == rejected().remaining(0));
    CHECK(limiter.check("key") == rejected().remaining(0));
}

TEST_CASE_TEMPLATE("a rejection tells the wait and the reset of its window", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{FixedWindow{.limit = 5, .window = 60s}, Storage::fresh(), clock};
    clock.set(2s);
    CHECK(expect::allowed_of(5, limiter, "key") == 5);
    CHECK(limiter.check("key") == rejected(58s).limit(5).remaining(0).reset_after(58s));
}

template <class Storage, class Algorithm>
void check_that_a_refund_on_a_fresh_key_grants_nothing(const Algorithm& of_two_per_hour) {
    const ManualClock clock;
    Limiter limiter{of_two_per_hour, Storage::fresh(), clock};
    CHECK(limiter.refund("key", 1) == allowed(2).reset_after(0us));
    CHECK(limiter.check("key") == allowed(1));
    CHECK(limiter.check("key") == allowed(0));
    CHECK(limiter.check("key") == rejected());
}

TEST_CASE_TEMPLATE("a refund on a fresh key grants nothing", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    check_that_a_refund_on_a_fresh_key_grants_nothing<Storage>(TokenBucket{.capacity = 2, .refill = per_hour(1)});
    check_that_a_refund_on_a_fresh_key_grants_nothing<Storage>(FixedWindow{.limit = 2, .window = 1h});
    check_that_a_refund_on_a_fresh_key_grants_nothing<Storage>(SlidingWindow{.limit = 2, .window = 1h});
}

}  // namespace
