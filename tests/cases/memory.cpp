// SPDX-License-Identifier: MIT
// A flood of invented keys neither frees the abuser nor locks newcomers out.
#include "../support/expect.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using penstock::AllOf;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::per_hour;
using penstock::TokenBucket;

using OfHours = Limiter<TokenBucket, LocalStorage, ManualClock>;

/// The clock stands, so that no record ever expires.
struct Flooded {
    Flooded() {
        CHECK(limiter.check("abuser", 10) == allowed(0));
        for (int i = 0; i < 100'000; ++i) {
            REQUIRE(limiter.check("invented " + std::to_string(i)) == allowed(9));
        }
    }

    OfHours limiter{TokenBucket{.capacity = 10, .refill = per_hour(1)},
                    LocalStorage{{.max_keys = 10'000, .seed = 1}},
                    ManualClock{}};
};

TEST_CASE_FIXTURE(Flooded, "a full table does not forget the abuser") {
    CHECK(limiter.check("abuser") == rejected(3600s));
    CHECK(limiter.storage().evictions() > 0);
    CHECK(limiter.storage().evictions() >= 100'001 - limiter.storage().slots());
}

TEST_CASE_FIXTURE(Flooded, "a full table does not deny newcomers") {
    CHECK(limiter.check("newcomer") == allowed(9));
}

TEST_CASE("a full table does not forget a client before the slowest of its limits is fresh again") {
    const ManualClock clock;
    Limiter limiter{AllOf{TokenBucket{.capacity = 10, .refill = per_hour(1)}, FixedWindow{.limit = 4, .window = 60s}},
                    LocalStorage{{.max_keys = 1, .seed = 1}},
                    clock};
    CHECK(limiter.check("abuser", 4) == allowed(0).limit(4).reset_after(60s));
    clock.set(60s);
    CHECK(limiter.check("abuser", 4) == allowed(0).limit(4).reset_after(60s));
    clock.set(600s);
    for (int i = 0; i < 1000; ++i) {
        REQUIRE(limiter.check("invented " + std::to_string(i)) == allowed(3));
    }
    CHECK(limiter.check("abuser", 4) == rejected(6600s).limit(10).remaining(2));
}

}  // namespace
