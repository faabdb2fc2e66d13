// SPDX-License-Identifier: MIT
// Several keys in one step: all of them or none, whoever else is at them.
#include "../support/threads.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using penstock::Decision;
using penstock::LocalStorage;
using penstock::Op;
using penstock::per_hour;
using penstock::Plan;
using penstock::plan;
using penstock::PlannedCheck;
using penstock::TokenBucket;
using Table = LocalStorage::Bound<TokenBucket>;
using Step = PlannedCheck<TokenBucket>;

Plan<TokenBucket> bucket(std::uint64_t capacity) {
    return plan(TokenBucket{.capacity = capacity, .refill = per_hour(1)});
}

std::uint64_t left(Table& table, std::string_view key, const Plan<TokenBucket>& limit) {
    Decision decision;
    CHECK(table.apply(Op::peek, key, limit, 0, 0, {}, decision) == penstock::StoreError::none);
    return decision.remaining;
}

template <std::size_t Count>
bool take(Table& table, std::array<Step, Count> steps) {
    std::array<Decision, Count> decisions;
    return table.apply_all(steps, 0, decisions);
}

TEST_CASE("a rejection by one key takes nothing from the others") {
    Table table{LocalStorage{{.max_keys = 100}}};
    const Plan<TokenBucket> small = bucket(1);
    const Plan<TokenBucket> large = bucket(10);

    CHECK(take<2>(table, {{{"client", &large}, {"tenant", &small}}}));
    CHECK_FALSE(take<2>(table, {{{"client", &large}, {"tenant", &small}}}));
    CHECK(left(table, "client", large) == 9);
    CHECK(left(table, "tenant", small) == 0);
}

TEST_CASE("a rejection leaves no trace of a key that was never seen") {
    Table table{LocalStorage{{.max_keys = 100}}};
    const Plan<TokenBucket> limit = bucket(3);

    std::array<Decision, 2> decisions;
    CHECK_FALSE(table.apply_all(std::array<Step, 2>{{{"new", &limit, 1}, {"other", &limit, 4}}}, 0, decisions));
    CHECK(decisions[0].allowed);
    CHECK(decisions[1].retry_after == penstock::never);
    CHECK(left(table, "new", limit) == 3);
}

TEST_CASE("an entry sees what an earlier one of the same key has taken") {
    Table table{LocalStorage{{.max_keys = 100}}};
    const Plan<TokenBucket> limit = bucket(3);

    CHECK_FALSE(take<2>(table, {{{"a", &limit, 2}, {"a", &limit, 2}}}));
    CHECK(left(table, "a", limit) == 3);
    CHECK(take<3>(table, {{{"a", &limit, 1}, {"b", &limit, 1}, {"a", &limit, 2}}}));
    CHECK(left(table, "a", limit) == 0);
    CHECK(left(table, "b", limit) == 2);
}

TEST_CASE("more checks than fit are not decided, and take nothing") {
    Table table{LocalStorage{{.max_keys = 100}}};
    const Plan<TokenBucket> limit = bucket(100);
    std::array<Step, Table::most_at_once + 1> steps;
    steps.fill({"a", &limit});
    CHECK_FALSE(take(table, steps));
    std::array<Decision, 1> too_few;
    CHECK_FALSE(table.apply_all(std::array<Step, 2>{{{"a", &limit}, {"b", &limit}}}, 0, too_few));
    CHECK(left(table, "a", limit) == 100);
}

TEST_CASE("checks of cost 0 pass and keep nothing") {
    Table table{LocalStorage{{.max_keys = 100}}};
    const Plan<TokenBucket> limit = bucket(1);
    CHECK(take<2>(table, {{{"a", &limit, 0}, {"b", &limit, 0}}}));
    CHECK(take<2>(table, {{{"a", &limit, 0}, {"b", &limit, 1}}}));
    CHECK(left(table, "a", limit) == 1);
    CHECK(left(table, "b", limit) == 0);
}

TEST_CASE("threads that take the same keys in different orders neither deadlock nor overspend") {
    constexpr std::uint64_t shared = 3000;
    Table table{LocalStorage{{.max_keys = 100}}};
    const Plan<TokenBucket> each = bucket(2000);
    const Plan<TokenBucket> all = bucket(shared);

    const std::vector<std::uint64_t> passed = threads::results_of(4, [&](std::size_t thread) {
        const std::string_view own = thread % 2 == 0 ? "even" : "odd";
        std::uint64_t count = 0;
        for (int i = 0; i < 2000; ++i) {
            std::array<Step, 2> steps{{{own, &each}, {"everyone", &all}}};
            if (thread > 1) {
                std::swap(steps[0], steps[1]);
            }
            count += take(table, steps) ? 1U : 0U;
        }
        return count;
    });

    CHECK(passed[0] + passed[1] + passed[2] + passed[3] == shared);
    CHECK(left(table, "everyone", all) == 0);
    CHECK(left(table, "even", each) + left(table, "odd", each) == 4000 - shared);
}

TEST_CASE("steps over several keys and checks of one of them agree") {
    constexpr std::uint64_t capacity = 5000;
    Table table{LocalStorage{{.max_keys = 100}}};
    const Plan<TokenBucket> limit = bucket(capacity);

    const std::vector<std::uint64_t> taken = threads::results_of(3, [&](std::size_t thread) {
        std::uint64_t count = 0;
        for (int i = 0; i < 3000; ++i) {
            Decision decision;
            if (thread == 0) {
                (void)table.apply(Op::check, "a", limit, 0, 1, {}, decision);
                count += decision.allowed ? 1U : 0U;
            } else {
                count += take<2>(table, {{{"a", &limit}, {"b", &limit}}}) ? 1U : 0U;
            }
        }
        return count;
    });

    CHECK(taken[0] + taken[1] + taken[2] == capacity);
    CHECK(left(table, "a", limit) == 0);
    CHECK(left(table, "b", limit) == capacity - taken[1] - taken[2]);
}

TEST_CASE("as many new keys as there are slots in a full table pass together") {
    Table table{LocalStorage{{.max_keys = 1}}};  // 16 slots
    constexpr std::size_t most = Table::most_at_once;
    REQUIRE(most == table.slots());
    const Plan<TokenBucket> limit = bucket(10);
    for (int round = 0; round < 20; ++round) {
        std::array<std::string, most> names;
        std::array<Step, most> steps;
        for (std::size_t i = 0; i < most; ++i) {
            names[i] = std::to_string(round) + "/" + std::to_string(i);
            steps[i] = {names[i], &limit};
        }
        CHECK(take(table, steps));
        CHECK(left(table, names[0], limit) == 9);
        CHECK(left(table, names[most - 1], limit) == 9);
    }
}

TEST_CASE("keys that crowd each other out of a tiny table still pass all or none") {
    Table table{LocalStorage{{.max_keys = 1}}};  // 16 slots
    const Plan<TokenBucket> limit = bucket(1'000'000);

    threads::together(2, [&](std::size_t thread) {
        for (int i = 0; i < 5000; ++i) {
            const std::string one = "a" + std::to_string(thread) + std::to_string(i % 40);
            const std::string two = "b" + std::to_string(i % 37);
            CHECK(take<2>(table, {{{one, &limit}, {two, &limit}}}));
        }
    });
    CHECK(table.evictions() > 0);
}

}  // namespace
