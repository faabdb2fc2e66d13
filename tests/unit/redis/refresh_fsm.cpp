// SPDX-License-Identifier: MIT
// When a cluster is asked for its slots.
#include <penstock/redis/refresh_fsm.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using penstock::redis::RefreshFsm;

constexpr std::int64_t interval = RefreshFsm::interval;

/// One that has asked at a time and was told everything.
RefreshFsm sure_since(std::int64_t now) {
    RefreshFsm fsm;
    fsm.asked(now);
    fsm.answered(true);
    return fsm;
}

TEST_CASE("a cluster of which nothing is known is asked at once, and by one question at a time") {
    RefreshFsm fsm;
    CHECK(fsm.wants_to_ask(0));
    fsm.asked(0);
    CHECK_FALSE(fsm.wants_to_ask(10 * interval));
}

TEST_CASE("without a doubt nothing is asked") {
    CHECK_FALSE(sure_since(0).wants_to_ask(1000 * interval));
}

TEST_CASE("a doubt is cleared up soon, but not more often than once in the interval") {
    RefreshFsm fsm = sure_since(1000);
    fsm.doubt();
    CHECK_FALSE(fsm.wants_to_ask(1000 + interval - 1));
    CHECK(fsm.wants_to_ask(1000 + interval));
    CHECK(fsm.due() == 1000 + interval);
}

TEST_CASE("a doubt that comes while the question is under way is not forgotten") {
    RefreshFsm fsm;
    fsm.asked(0);
    fsm.doubt();
    fsm.answered(true);
    CHECK(fsm.wants_to_ask(interval));
}

TEST_CASE("an answer that leaves slots to nobody, or none at all, makes it ask again") {
    RefreshFsm incomplete;
    incomplete.asked(0);
    incomplete.answered(false);
    CHECK(incomplete.wants_to_ask(interval));
    RefreshFsm failed;
    failed.asked(0);
    failed.failed();
    CHECK(failed.wants_to_ask(interval));
}

}  // namespace
