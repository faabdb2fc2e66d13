// SPDX-License-Identifier: MIT
#include <penstock/rate.hpp>

#include <doctest/doctest.h>

#include "../support/print.hpp"

#include <chrono>
#include <cstdint>
#include <limits>

namespace {

using namespace std::chrono_literals;
using penstock::per;
using penstock::per_day;
using penstock::per_hour;
using penstock::per_minute;
using penstock::per_second;
using penstock::Rate;

template <class Number>
concept Countable = requires(Number n) {
    per_second(n);
};

template <class Duration>
concept Period = requires(Duration period) {
    per(1, period);
};

TEST_CASE("a rate is a count and the period in which it comes") {
    CHECK((per_second(10) == Rate{.count = 10, .period = 1s}));
    CHECK((per_minute(10) == Rate{.count = 10, .period = 1min}));
    CHECK((per_hour(10) == Rate{.count = 10, .period = 1h}));
    CHECK((per_day(10) == Rate{.count = 10, .period = 24h}));
    CHECK((per(10, 13s) == Rate{.count = 10, .period = 13s}));
    CHECK((Rate{} == Rate{.count = 0, .period = 0us}));
}

TEST_CASE("a rate is kept as written: equal speed is not equality") {
    CHECK(per(10, 10s) != per(1, 1s));
    CHECK(per_minute(60) != per_second(1));
    CHECK(per(1, 1000ms) == per_second(1));
}

TEST_CASE("any whole number is a count") {
    CHECK(per_second(std::int8_t{7}).count == 7);
    CHECK(per_second(7U).count == 7);
    CHECK(per_second(std::uint64_t{7}).count == 7);
    CHECK(per_second(std::int64_t{-7}).count == -7);
    CHECK(per_second((std::numeric_limits<std::int64_t>::min)()).count == (std::numeric_limits<std::int64_t>::min)());
}

TEST_CASE("a count that no rate can hold does not become a negative one") {
    constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
    CHECK(per_second((std::numeric_limits<std::uint64_t>::max)()).count == most);
    CHECK(per_second(static_cast<std::uint64_t>(most)).count == most);
    CHECK(per_second(static_cast<std::uint64_t>(most) + 1).count == most);
}

TEST_CASE("fractions of a unit and of a microsecond are not taken") {
    CHECK(Countable<int>);
    CHECK_FALSE(Countable<double>);
    CHECK_FALSE(Countable<float>);
    CHECK(Period<std::chrono::hours>);
    CHECK(Period<std::chrono::microseconds>);
    CHECK_FALSE(Period<std::chrono::nanoseconds>);
    CHECK_FALSE(Period<std::chrono::duration<double>>);
}

TEST_CASE("a rate is known at compile time") {
    constexpr Rate rate = per_day(10);
    static_assert(rate == per(10, 86'400s));
    CHECK(rate.count == 10);
}

}  // namespace
