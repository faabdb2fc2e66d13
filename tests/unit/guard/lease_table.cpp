// SPDX-License-Identifier: MIT
// The leases of several clients: whose it is, who makes place, who has rested for long enough.
#include <penstock/guard/lease_table.hpp>

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::LeasedOptions;
using penstock::Micros;
using penstock::TokenBucket;
using penstock::detail::HashedKey;
using penstock::detail::LeaseAsk;

using Table = penstock::detail::LeaseTable<TokenBucket>;
using Returns = std::vector<penstock::detail::LeaseReturn<TokenBucket>>;

constexpr LeasedOptions options{.size = 8, .idle_return = 1s};
constexpr Micros second = 1'000'000;
constexpr penstock::Plan<TokenBucket> free_plan{{.capacity = 100, .refill = penstock::per_second(1)}};
constexpr penstock::Plan<TokenBucket> paid_plan{{.capacity = 200, .refill = penstock::per_second(1)}};

/// All keys collide: only the key itself tells them apart.
HashedKey hashed(std::string_view key) {
    return {key, 7};
}

/// Uses a lease, and puts so many units in it, that end 10 seconds later.
Table::Entry& fill(
    Table& table, std::string_view key, std::uint64_t units, Micros now, std::chrono::microseconds refundable = 10s) {
    Table::Entry& entry = table.use(hashed(key), free_plan, now);
    const LeaseAsk ask{.amount = units, .sent = now, .takes = true};
    entry.lease.answered(ask, {.allowed = true, .limit = 100, .remaining = 50, .reset_after = 10s}, refundable, 8);
    return entry;
}

std::string text_of(const Returns& returns) {
    std::string text;
    for (const auto& each : returns) {
        text += each.key + ":" + std::to_string(each.units) + " ";
    }
    return text;
}

TEST_CASE("a key finds its lease again") {
    Table table(options, 10);
    fill(table, "one", 5, 0);
    fill(table, "two", 3, 0);
    CHECK(table.use(hashed("one"), free_plan, 0).lease.left() == 5);
    CHECK(table.use(hashed("two"), free_plan, 0).lease.left() == 3);
    CHECK(table.find(hashed("three")) == nullptr);
    CHECK(table.size() == 2);
}

TEST_CASE("another plan gives back what was held, and begins anew") {
    Table table(options, 10);
    const std::uint64_t number = fill(table, "key", 5, 0).number;
    const Table::Entry& other = table.use(hashed("key"), paid_plan, 0);
    CHECK(other.lease.left() == 0);
    CHECK(other.number != number);
    const Returns returns = table.take_returns();
    CHECK(text_of(returns) == "key:5 ");
    CHECK(returns.at(0).plan.algorithm() == free_plan.algorithm());
    CHECK(table.take_returns().empty());
}

TEST_CASE("the one that was idle longest makes place") {
    Table table(options, 3);
    fill(table, "one", 1, 0);
    fill(table, "two", 2, 0);
    fill(table, "three", 3, 0);
    (void)table.use(hashed("one"), free_plan, 0);
    (void)table.use(hashed("four"), free_plan, 0);
    CHECK(text_of(table.take_returns()) == "two:2 ");
    CHECK(table.find(hashed("two")) == nullptr);
    CHECK(table.size() == 3);
}

TEST_CASE("those that rest make place before those in use") {
    Table table(options, 2);
    fill(table, "one", 1, 0);
    table.sweep(second);
    fill(table, "two", 2, second);
    CHECK(text_of(table.take_returns()) == "one:1 ");
    (void)table.use(hashed("three"), free_plan, second);
    CHECK(table.find(hashed("one")) == nullptr);
    CHECK(table.find(hashed("two")) != nullptr);
    CHECK(table.take_returns().empty());
}

TEST_CASE("a sweep gives up what was idle for long enough, the oldest first") {
    Table table(options, 10);
    fill(table, "one", 1, 0);
    fill(table, "two", 2, 1);
    table.sweep(second - 1);
    CHECK(table.take_returns().empty());
    table.sweep(second);
    table.sweep(second);
    CHECK(text_of(table.take_returns()) == "one:1 ");
    table.sweep(second + 1);
    CHECK(text_of(table.take_returns()) == "two:2 ");
    table.sweep(100 * second);
    CHECK(table.take_returns().empty());
    CHECK(table.size() == 2);
}

TEST_CASE("a client that rested is in use again when it comes") {
    Table table(options, 10);
    fill(table, "one", 1, 0);
    fill(table, "two", 2, 0);
    table.sweep(second);
    fill(table, "one", 4, second);
    table.sweep(second);
    table.sweep(2 * second);
    CHECK(text_of(table.take_returns()) == "one:1 two:2 one:4 ");
}

TEST_CASE("a client that waits for an answer is not swept") {
    Table table(options, 10);
    Table::Entry& entry = fill(table, "one", 1, 0);
    const LeaseAsk ask = entry.lease.ask(2, 0, 8);
    table.sweep(second);
    CHECK(table.take_returns().empty());
    entry.lease.failed(ask);
    table.sweep(second);
    CHECK(text_of(table.take_returns()) == "one:1 ");
}

TEST_CASE("what cannot be given back exactly is dropped") {
    Table table(options, 10);
    fill(table, "one", 1, 0, 500ms);
    table.sweep(second);
    CHECK(table.take_returns().empty());
    CHECK(table.dropped() == 1);
}

TEST_CASE("what has ended with its window is dropped when its client comes again; a bucket's is as good as before") {
    const penstock::Plan<penstock::FixedWindow> hourly{{.limit = 100, .window = 1h}};
    penstock::detail::LeaseTable<penstock::FixedWindow> windows(options, 10);
    windows.use(hashed("one"), hourly, 0)
        .lease.answered({.amount = 5, .takes = true}, {.allowed = true, .limit = 100, .reset_after = 10s}, 10s, 8);
    CHECK(windows.use(hashed("one"), hourly, 10 * second).lease.left() == 0);
    CHECK(windows.dropped() == 5);
    CHECK(windows.take_returns().empty());

    Table buckets(options, 10);
    fill(buckets, "one", 5, 0);
    CHECK(buckets.use(hashed("one"), free_plan, 10 * second).lease.left() == 5);
}

TEST_CASE("a key that is dropped loses what it held") {
    Table table(options, 10);
    fill(table, "one", 5, 0);
    table.drop(hashed("one"));
    table.drop(hashed("two"));
    CHECK(table.dropped() == 5);
    CHECK(table.size() == 0);
    CHECK(table.take_returns().empty());
}

TEST_CASE("in the end all is given up, from clients in use and clients that rest") {
    Table table(options, 10);
    fill(table, "one", 1, 0);
    table.sweep(second);
    fill(table, "two", 2, second);
    table.give_up_all(second);
    CHECK(text_of(table.take_returns()) == "one:1 two:2 ");
    CHECK(table.size() == 0);
    CHECK(table.use(hashed("one"), free_plan, second).lease.left() == 0);
}

TEST_CASE("a clock that is set back makes nobody idle") {
    Table table(options, 10);
    fill(table, "one", 1, 5 * second);
    table.sweep(0);
    CHECK(table.take_returns().empty());
    CHECK(table.use(hashed("one"), free_plan, 0).lease.left() == 1);
}

}  // namespace
