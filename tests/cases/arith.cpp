// SPDX-License-Identifier: MIT
// Arithmetic in which other limiters overflowed, truncated, drifted or lost fractions.
#include "../support/expect.hpp"
#include "../support/storages.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::allowed_of;
using expect::rejected;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::never;
using penstock::per;
using penstock::per_second;
using penstock::TokenBucket;

TEST_CASE_TEMPLATE("the reference vector", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 5, .refill = per_second(2)}, Storage::fresh(), clock};
    for (std::uint64_t left = 5; left-- > 0;) {
        CHECK(limiter.check("key") == allowed(left).limit(5));
    }
    CHECK(limiter.check("key") == rejected(500ms).remaining(0).reset_after(2500ms));
    clock.set(500ms);
    CHECK(limiter.check("key") == allowed(0).reset_after(2500ms));
    CHECK(limiter.check("key") == rejected(500ms).remaining(0).reset_after(2500ms));
    clock.set(1500ms);
    CHECK(limiter.check("key") == allowed(1).reset_after(2s));
    CHECK(limiter.check("key") == allowed(0).reset_after(2500ms));
    CHECK(limiter.check("key") == rejected(500ms).remaining(0).reset_after(2500ms));
}

TEST_CASE_TEMPLATE("a burst above 2^31 is not truncated", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 3'355'443'200, .refill = per_second(10'000'000)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 3'355'443'200) == allowed(0).limit(3'355'443'200).reset_after(335'544'320us));
    CHECK(limiter.check("key") == rejected(1us));
}

TEST_CASE_TEMPLATE("a state wider than 32 bits survives the store", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 4'294'967'297, .refill = per_second(1)}, Storage::fresh(), clock};
    CHECK(limiter.check("key") == allowed(4'294'967'296));
    CHECK(limiter.check("key") == allowed(4'294'967'295));
    CHECK(limiter.check("key", 4'294'967'295) == allowed(0));
}

TEST_CASE_TEMPLATE("a refill time too long is refused at construction and by configure",
                   Storage,
                   PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr TokenBucket too_slow{.capacity = 1'000'000'000, .refill = penstock::per_day(1)};
    constexpr TokenBucket slow{.capacity = 10, .refill = penstock::per_day(1)};
    constexpr const char* text =
        "TokenBucket.capacity is 1000000000 at a refill of 1 per 86400000000 us: allowed is what "
        "is refilled twice in less than 9007199254740992 us";
    CHECK_THROWS_WITH_AS((Limiter{too_slow, Storage::fresh()}), text, std::invalid_argument);

    const ManualClock clock;
    Limiter limiter{slow, Storage::fresh(), clock};
    CHECK(limiter.check("key", 4) == allowed(6));
    CHECK_THROWS_WITH_AS(limiter.configure(too_slow), text, std::invalid_argument);
    CHECK(limiter.algorithm() == slow);
    CHECK(limiter.check("key") == allowed(5).limit(10));
}

TEST_CASE_TEMPLATE("a rational rate admits on the exact microsecond", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 1, .refill = per(10, 13s)}, Storage::fresh(), clock};
    CHECK(limiter.check("key") == allowed(0));
    CHECK(limiter.check("key") == rejected(1'300'000us));
    clock.set(1'299'999us);
    CHECK(limiter.check("key") == rejected(1us));
    clock.set(1'300'000us);
    CHECK(limiter.check("key") == allowed(0));
}

TEST_CASE_TEMPLATE("a huge idle time does not overflow the refill", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 9'999'999, .refill = per_second(9'999'999)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 9'999'999) == allowed(0));
    clock.set(30 * 24h);
    CHECK(limiter.check("key") == allowed(9'999'998).reset_after(1us));
}

TEST_CASE_TEMPLATE("an idle bucket fills to its capacity only", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 10, .refill = per_second(1)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 10) == allowed(0));
    clock.set(3600s);
    CHECK(limiter.check("key", 11) == rejected(never).remaining(10));
    CHECK(limiter.check("key", 10) == allowed(0));
    CHECK(limiter.check("key") == rejected(1s));
}

TEST_CASE_TEMPLATE("there is no free unit after the clock advances", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 5, .refill = per_second(5)}, Storage::fresh(), clock};
    for (const auto now : {0s, 2s}) {
        clock.set(now);
        for (std::uint64_t left = 5; left-- > 0;) {
            CHECK(limiter.check("key") == allowed(left));
        }
        CHECK(limiter.check("key") == rejected(200ms));
    }
}

TEST_CASE_TEMPLATE("frequent calls lose no fraction", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 100, .refill = per_second(10)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 100) == allowed(0));
    for (std::uint64_t left = 0; left < 10; ++left) {
        clock.advance(190ms);
        CHECK(limiter.check("key") == allowed(left));
    }
}

TEST_CASE_TEMPLATE("fast rates really limit", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 6000, .refill = per_second(6000)}, Storage::fresh(), clock};
    for (std::uint64_t left = 6000; left-- > 0;) {
        REQUIRE(limiter.check("key") == allowed(left));
    }
    CHECK(limiter.check("key") == rejected(167us));
}

TEST_CASE_TEMPLATE("more than a thousand per second is accepted", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 1, .refill = per_second(2000)}, Storage::fresh(), clock};
    CHECK(limiter.check("key") == allowed(0));
    clock.set(499us);
    CHECK(limiter.check("key") == rejected(1us));
    clock.set(500us);
    CHECK(limiter.check("key") == allowed(0));
}

TEST_CASE_TEMPLATE("the full rate is delivered under overload", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 1000, .refill = per_second(1000)}, Storage::fresh(), clock};
    std::uint64_t count = 0;
    for (int call = 0; call < 50'000; ++call) {
        clock.set(call * 200us);
        count += allowed_of(1, limiter, "key");
    }
    CHECK(count == 10'999);
}

TEST_CASE_TEMPLATE("there is no full reset each period", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 3, .refill = per_second(3)}, Storage::fresh(), clock};
    std::uint64_t count = 0;
    for (int call = 0; call <= 100; ++call) {
        clock.set(call * 100ms);
        count += allowed_of(1, limiter, "key");
    }
    CHECK(count == 33);
}

TEST_CASE_TEMPLATE("less than one period still refills", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 10, .refill = penstock::per_minute(10)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", 10) == allowed(0));
    clock.set(30s);
    CHECK(limiter.check("key") == allowed(4).reset_after(36s));
}

TEST_CASE_TEMPLATE("times of sixteen digits keep every one", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 5, .refill = per_second(1)}, Storage::fresh(), clock};
    clock.set(1'000'000'000'000'000us);
    CHECK(limiter.check("round") == allowed(4));
    CHECK(limiter.check("round") == allowed(3));
    clock.set(1'764'560'000'123'456us);
    CHECK(limiter.check("ragged", 5) == allowed(0));
    clock.advance(999'999us);
    CHECK(limiter.check("ragged") == rejected(1us));
    clock.advance(1us);
    CHECK(limiter.check("ragged") == allowed(0));
}

}  // namespace
