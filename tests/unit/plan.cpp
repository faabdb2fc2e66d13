// SPDX-License-Identifier: MIT
#include <penstock/plan.hpp>

#include <penstock/decision.hpp>

#include <doctest/doctest.h>

#include "../support/archetypes.hpp"
#include "../support/refusal.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {

using penstock::Decision;
using penstock::Micros;
using penstock::Plan;

/// An algorithm with a bound of its own.
struct Even {
    std::uint64_t number = 0;

    friend bool operator==(const Even&, const Even&) = default;

    constexpr void validate() const {
        if (number % 2 != 0) {
            throw std::invalid_argument("Even.number is " + std::to_string(number) + ": allowed is any even number");
        }
    }

    struct State {};

    static Decision step(State&, const Plan<Even>& plan, Micros, std::uint64_t, Micros) noexcept {
        return {.allowed = true, .limit = plan.number};
    }
};

/// An algorithm that wants the key's phase.
struct Staggered {
    bool wanted = false;

    constexpr bool staggered() const noexcept { return wanted; }
};

TEST_CASE("the plan of an algorithm without a reduced form is its parameters") {
    const Plan<support::Quota> plan = penstock::plan(support::Quota{.units = 7});
    CHECK(plan.units == 7);
    CHECK(plan.algorithm().units == 7);
    CHECK(std::is_trivially_copyable_v<Plan<support::Quota>>);
}

TEST_CASE("an algorithm's own validate() decides what a plan is made of") {
    CHECK(penstock::plan(Even{.number = 4}).number == 4);
    CHECK(support::refusal(Even{.number = 5}, Even{.number = 4}) == "Even.number is 5: allowed is any even number");
}

TEST_CASE("a plan may be made at compile time") {
    constexpr Plan<Even> plan = penstock::plan(Even{.number = 4});
    static_assert(plan.algorithm().number == 4);
    CHECK(plan.number == 4);
}

TEST_CASE("an algorithm is no plan until it was asked for") {
    CHECK_FALSE(std::is_convertible_v<Even, Plan<Even>>);
    CHECK(std::is_same_v<decltype(penstock::plan(Even{})), Plan<Even>>);
}

TEST_CASE("only a plan that says so wants the key's phase") {
    CHECK_FALSE(penstock::detail::is_staggered(penstock::plan(Even{})));
    CHECK_FALSE(penstock::detail::is_staggered(penstock::plan(Staggered{.wanted = false})));
    CHECK(penstock::detail::is_staggered(penstock::plan(Staggered{.wanted = true})));
}

TEST_CASE("a time in one byte is rounded up by less than a quarter, and grows with the time") {
    using penstock::detail::Payoff;
    CHECK(Payoff::of(1, 0) == 0);
    CHECK(Payoff::of(1, 20) == 80);
    CHECK(Payoff::of(16, 0) == 16);
    CHECK(Payoff::of(17, 0) == 17);
    CHECK(Payoff::of(31, 0) == 20);
    for (std::uint64_t units = 1; units < 10'000; ++units) {
        const unsigned payoff = Payoff::of(units, 3);
        CHECK(payoff >= Payoff::of(units - (units > 1 ? 1 : 0), 3));
        const std::uint64_t whole = Payoff::share(units << 3, payoff);
        CHECK(whole <= 256);
        CHECK(whole >= 204);
    }
    CHECK(Payoff::share(penstock::detail::end_of_time, 0) > 0);
    CHECK(Payoff::of(penstock::detail::largest_limit, 15) <= 255);
}

}  // namespace
