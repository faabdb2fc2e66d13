// SPDX-License-Identifier: MIT
#include <penstock/check.hpp>

#include <doctest/doctest.h>

#include "../support/archetypes.hpp"

namespace {

using penstock::Check;
using penstock::PlannedCheck;
using penstock::Priority;

TEST_CASE("an entry of a batch is a key that takes one unit at normal priority") {
    const Check check{.key = "user:42"};
    CHECK(check.key == "user:42");
    CHECK(check.cost == 1);
    CHECK(check.priority == Priority::normal);
}

TEST_CASE("an entry may have a cost and a priority of its own") {
    const Check check{.key = "user:42", .cost = 7, .priority = Priority::low};
    CHECK(check.cost == 7);
    CHECK(check.priority == Priority::low);
}

TEST_CASE("one of several checks that pass together takes one unit, and has a plan of its own") {
    const penstock::Plan<support::Quota> plan = penstock::plan(support::Quota{.units = 3});
    const PlannedCheck<support::Quota> check{.key = "user:42", .plan = &plan};
    CHECK(check.key == "user:42");
    CHECK(check.plan->units == 3);
    CHECK(check.cost == 1);
}

TEST_CASE("priorities have an order") {
    CHECK(Priority::low < Priority::normal);
    CHECK(Priority::normal < Priority::high);
}

}  // namespace
