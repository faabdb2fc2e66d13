// SPDX-License-Identifier: MIT
// Costs that can never pass, costs that were negative once, and limits of zero.
#include "../support/expect.hpp"
#include "../support/storages.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::never;
using penstock::per;
using penstock::per_second;
using penstock::SlidingWindow;
using penstock::TokenBucket;

TEST_CASE_TEMPLATE("a cost above the capacity reports never and takes nothing", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 3, .refill = per(3, 2s)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 4) == rejected(never).remaining(3).reset_after(0us));
    CHECK(limiter.check("key", 3) == allowed(0));
}

template <class Storage, class Window>
void check_that_an_oversize_cost_is_refused(const Window& of_ten) {
    const ManualClock clock;
    Limiter limiter{of_ten, Storage::fresh(), clock};
    CHECK(limiter.check("key", 11) == rejected(never).remaining(10).reset_after(0us));
    CHECK(limiter.check("key", 10) == allowed(0));
    CHECK(limiter.check("key") == rejected());
}

TEST_CASE_TEMPLATE("a cost above a window's limit is refused", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    check_that_an_oversize_cost_is_refused<Storage>(SlidingWindow{.limit = 10, .window = 60s});
    check_that_an_oversize_cost_is_refused<Storage>(FixedWindow{.limit = 10, .window = 60s});
}

TEST_CASE_TEMPLATE("a negative number as cost mints nothing", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 5, .refill = per_second(1)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 5) == allowed(0));
    CHECK(limiter.check("key", static_cast<std::uint64_t>(-3)) == rejected(never).remaining(0).reset_after(5s));
    CHECK(limiter.check("key") == rejected(1s).reset_after(5s));
}

/// Refused at construction and by configure, which leaves algorithm and clients as they were.
template <class Storage, class Algorithm>
void check_refused(const Algorithm& good, const Algorithm& bad, const char* text) {
    CHECK_THROWS_WITH_AS((Limiter{bad, Storage::fresh()}), text, std::invalid_argument);

    const ManualClock clock;
    Limiter limiter{good, Storage::fresh(), clock};
    CHECK(limiter.check("key", 2) == allowed(3));
    CHECK_THROWS_WITH_AS(limiter.configure(bad), text, std::invalid_argument);
    CHECK(limiter.algorithm() == good);
    CHECK(limiter.check("key", 3) == allowed(0));
    CHECK(limiter.check("key") == rejected());
}

TEST_CASE_TEMPLATE("a rate of zero is an error, not unlimited", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr TokenBucket bucket{.capacity = 5, .refill = per_second(1)};
    check_refused<Storage>(bucket,
                           TokenBucket{.capacity = 1, .refill = per(0, 1s)},
                           "TokenBucket.refill.count is 0: allowed is 1 or more");
    check_refused<Storage>(bucket,
                           TokenBucket{.capacity = 1, .refill = per(1, 0s)},
                           "TokenBucket.refill.period is 0 us: allowed is 1 us to 35184372088832 us");
    check_refused<Storage>(bucket,
                           TokenBucket{.capacity = 0, .refill = per(1, 1s)},
                           "TokenBucket.capacity is 0: allowed is 1 to 549755813888");
}

TEST_CASE_TEMPLATE("a window of zero or less is an error", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr SlidingWindow sliding{.limit = 5, .window = 1s};
    constexpr FixedWindow fixed{.limit = 5, .window = 1s};
    check_refused<Storage>(sliding,
                           SlidingWindow{.limit = 10, .window = 0s},
                           "SlidingWindow.window is 0 us: allowed is 1 us to 35184372088832 us");
    check_refused<Storage>(sliding,
                           SlidingWindow{.limit = 10, .window = -1s},
                           "SlidingWindow.window is -1000000 us: allowed is 1 us to 35184372088832 us");
    check_refused<Storage>(
        fixed, FixedWindow{.limit = 0, .window = 1s}, "FixedWindow.limit is 0: allowed is 1 to 549755813888");
    check_refused<Storage>(fixed,
                           FixedWindow{.limit = 10, .window = -1s},
                           "FixedWindow.window is -1000000 us: allowed is 1 us to 35184372088832 us");
}

}  // namespace
