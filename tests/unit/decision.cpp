// SPDX-License-Identifier: MIT
#include <penstock/decision.hpp>

#include <doctest/doctest.h>

#include "../support/print.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::Reservation;
using penstock::Source;

TEST_CASE("a decision that nobody made rejects") {
    const Decision decision;
    CHECK_FALSE(decision.allowed);
    CHECK(decision.limit == 0);
    CHECK(decision.remaining == 0);
    CHECK(decision.retry_after == 0us);
    CHECK(decision.reset_after == 0us);
    CHECK(decision.source == Source::store);

    const Reservation reservation;
    CHECK(reservation.decision == Decision{});
    CHECK(reservation.wait == 0us);
}

TEST_CASE("decisions and reservations are true where a condition is asked for, and nowhere else") {
    CHECK(static_cast<bool>(Decision{.allowed = true}));
    CHECK_FALSE(static_cast<bool>(Decision{.allowed = false, .remaining = 1}));
    CHECK(static_cast<bool>(Reservation{.decision = {.allowed = true}}));
    CHECK_FALSE(static_cast<bool>(Reservation{.decision = {.allowed = false}, .wait = 1us}));
    CHECK_FALSE(std::is_convertible_v<Decision, bool>);
    CHECK_FALSE(std::is_convertible_v<Reservation, bool>);
}

TEST_CASE("decisions are equal when every field is") {
    const Decision decision{true, 5, 4, 3us, 2us, Source::lease};
    CHECK(decision == Decision{true, 5, 4, 3us, 2us, Source::lease});
    CHECK(decision != Decision{false, 5, 4, 3us, 2us, Source::lease});
    CHECK(decision != Decision{true, 6, 4, 3us, 2us, Source::lease});
    CHECK(decision != Decision{true, 5, 5, 3us, 2us, Source::lease});
    CHECK(decision != Decision{true, 5, 4, 4us, 2us, Source::lease});
    CHECK(decision != Decision{true, 5, 4, 3us, 3us, Source::lease});
    CHECK(decision != Decision{true, 5, 4, 3us, 2us, Source::store});

    CHECK(Reservation{decision, 1us} == Reservation{decision, 1us});
    CHECK(Reservation{decision, 1us} != Reservation{decision, 2us});
    CHECK(Reservation{decision, 1us} != Reservation{Decision{}, 1us});
}

TEST_CASE("never is later than any other time") {
    CHECK(penstock::never.count() == (std::numeric_limits<std::int64_t>::max)());
}

TEST_CASE("every source has its name") {
    const std::pair<Source, std::string_view> names[] = {
        {Source::store, "store"},
        {Source::lease, "lease"},
        {Source::denied_cache, "denied_cache"},
        {Source::fallback, "fallback"},
        {Source::fail_open, "fail_open"},
        {Source::fail_closed, "fail_closed"},
        {Source::override_block, "override_block"},
        {Source::override_exempt, "override_exempt"},
        {Source::shed, "shed"},
        {Source::unmatched, "unmatched"},
    };
    for (const auto& [source, name] : names) {
        CHECK(to_string(source) == name);
    }
    CHECK(to_string(static_cast<Source>(200)) == "unknown");
}

TEST_CASE("a decision is known at compile time where its input is") {
    constexpr Decision decision{.allowed = true, .source = Source::shed};
    static_assert(decision && decision != Decision{});
    static_assert(to_string(decision.source) == "shed");
    CHECK(decision);
}

}  // namespace
