// SPDX-License-Identifier: MIT
// One client's lease: what it asks for, when it ends, for how long a rejection is believed.
#include <penstock/guard/lease.hpp>

#include "../../support/archetypes.hpp"
#include "../../support/print.hpp"
#include "../../support/refusal.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::LeasedOptions;
using penstock::Micros;
using penstock::plan;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::TokenBucket;
using penstock::detail::Lease;
using penstock::detail::LeaseAsk;
using std::chrono::microseconds;
using support::text_of;

constexpr std::uint64_t size = 8;
constexpr Micros second = 1'000'000;

constexpr Decision admitted{.allowed = true, .limit = 100, .remaining = 50, .reset_after = 10s};
constexpr Decision rejected{.allowed = false, .limit = 100, .remaining = 0, .retry_after = 2s, .reset_after = 10s};

/// Asks on behalf of a caller, and is answered.
LeaseAsk take(Lease& lease, std::uint64_t cost, Micros now, const Decision& decision = admitted) {
    const LeaseAsk ask = lease.ask(cost, now, size);
    lease.answered(ask, decision, decision.reset_after, size);
    return ask;
}

/// Uses up what it has, one by one.
void use_up(Lease& lease, Micros now) {
    Decision decision;
    while (lease.decide(1, now, decision)) {
    }
}

/// Holds so much, at most the size.
Lease holding(std::uint64_t units, Micros now = 0) {
    Lease lease;
    while (lease.left() < units) {
        use_up(lease, now);
        (void)take(lease, 1, now);
    }
    Decision decision;
    REQUIRE(lease.decide(lease.left() - units, now, decision));
    return lease;
}

TEST_CASE("a lease begins with what the check costs, and the next take is twice as large, up to the size") {
    Lease lease;
    std::vector<std::uint64_t> amounts;
    for (int i = 0; i < 6; ++i) {
        amounts.push_back(take(lease, 1, 0).amount);
        use_up(lease, 0);
    }
    CHECK(amounts == std::vector<std::uint64_t>{1, 2, 4, 8, 8, 8});
    Lease other;
    CHECK(take(other, 5, 0).amount == 5);
}

TEST_CASE("what is held and what is asked for stay within the size, whatever the costs are") {
    Lease lease = holding(6);
    const LeaseAsk ask = lease.ask(7, 0, size);
    CHECK(ask.amount == 7);
    CHECK(ask.surplus() == 0);
    Lease other = holding(2);
    CHECK(other.ask(3, 0, size).amount == 6);
}

TEST_CASE("while one caller's ask is under way others ask for their own cost alone, and nothing is renewed") {
    Lease lease = holding(1);
    Decision decision;
    REQUIRE(lease.decide(1, 0, decision));
    const LeaseAsk first = lease.ask(1, 0, size);
    CHECK(first.takes);
    CHECK(lease.is_waiting());
    const LeaseAsk second_ask = lease.ask(2, 0, size);
    CHECK_FALSE(second_ask.takes);
    CHECK(second_ask.amount == 2);
    CHECK(lease.renewal(0, size).amount == 0);
    lease.answered(second_ask, admitted, 10s, size);
    CHECK(lease.left() == 0);
    CHECK(lease.is_waiting());
    lease.answered(first, admitted, 10s, size);
    CHECK_FALSE(lease.is_waiting());
    CHECK(lease.left() == first.surplus());
}

TEST_CASE("a renewal is due when an eighth of the last take is left, or one unit") {
    Lease lease = holding(7);  // of 8
    Decision decision;
    REQUIRE(lease.decide(5, 0, decision));
    CHECK(lease.renewal(0, size).amount == 0);
    REQUIRE(lease.decide(1, 0, decision));
    const LeaseAsk renewal = lease.renewal(0, size);
    CHECK(renewal.amount == 7);
    CHECK(renewal.cost == 0);
    lease.answered(renewal, admitted, 10s, size);
    CHECK(lease.left() == size);

    Lease small = holding(1);  // of 2
    CHECK(small.renewal(0, size).amount > 0);
    Lease unused;
    CHECK(unused.renewal(0, size).amount == 0);
    CHECK(take(unused, 1, 0).amount == 1);

    Lease single;
    single.answered(single.ask(1, 0, 1), admitted, 10s, 1);
    CHECK(single.left() == 0);
    CHECK(single.renewal(0, 1).amount == 0);
}

TEST_CASE("after a renewal that failed or was rejected only a caller who finds nothing left asks again") {
    for (const bool answered : {false, true}) {
        CAPTURE(answered);
        Lease lease = holding(7);
        Decision decision;
        REQUIRE(lease.decide(6, 0, decision));
        const LeaseAsk renewal = lease.renewal(0, size);
        REQUIRE(renewal.amount > 0);
        if (answered) {
            lease.answered(renewal, rejected, 0s, size);
        } else {
            lease.failed(renewal);
        }
        CHECK(lease.decide(1, 0, decision));
        CHECK(lease.renewal(0, size).amount == 0);
        CHECK_FALSE(lease.decide(1, 0, decision));
        CHECK(take(lease, 1, 0).amount >= 1);
    }
}

TEST_CASE("a check that is served is told what the store said, less what has passed since") {
    Lease lease = holding(5, second);
    Decision decision;
    REQUIRE(lease.decide(2, 4 * second, decision));
    CHECK(decision == Decision{.allowed = true,
                               .limit = 100,
                               .remaining = 53,
                               .retry_after = 0s,
                               .reset_after = 7s,
                               .source = Source::lease});
    REQUIRE(lease.decide(0, 4 * second, decision));
    CHECK(decision.remaining == 53);
    REQUIRE(lease.decide(1, 0, decision));  // the clock was set back
    CHECK(decision.reset_after == 11s);
}

TEST_CASE("the remaining that is told is never above the limit") {
    Lease lease = holding(5);
    Decision decision;
    lease.answered(lease.ask(1, 0, 0), admitted, 10s, size);
    const LeaseAsk ask = lease.ask(6, 0, size);
    lease.answered(ask, {.allowed = true, .limit = 10, .remaining = 9, .reset_after = 10s}, 10s, size);
    REQUIRE(lease.decide(1, 0, decision));
    CHECK(decision.remaining == 10);
}

TEST_CASE("it ends when the store has given all back by itself") {
    Lease lease = holding(5, second);
    Decision decision;
    CHECK(lease.decide(1, 11 * second - 1, decision));
    CHECK_FALSE(lease.decide(1, 11 * second, decision));
    CHECK_FALSE(lease.decide(0, 11 * second, decision));
    CHECK(lease.has_ended(11 * second));
    CHECK(lease.release() == 4);
    CHECK(lease.release() == 0);
}

TEST_CASE("a rejection is believed for the same cost, until retry_after or the longest age has passed") {
    Lease lease;
    Decision told = rejected;
    lease.refused(take(lease, 3, second, rejected), told, 5s);
    CHECK(told == rejected);
    Decision decision;
    REQUIRE(lease.decide(3, second, decision));
    CHECK_FALSE(decision.allowed);
    CHECK(decision.retry_after == 2s);
    CHECK(decision.source == Source::lease);
    REQUIRE(lease.decide(3, 3 * second - 1, decision));
    CHECK(decision.retry_after == 1us);
    CHECK_FALSE(lease.decide(2, second, decision));
    CHECK_FALSE(lease.decide(4, second, decision));      // it waits longer, for ever maybe
    CHECK_FALSE(lease.decide(3, second - 1, decision));  // a clock that was set back
    CHECK_FALSE(lease.decide(3, 3 * second, decision));

    Lease other;
    other.refused(take(other, 3, second, rejected), told, 1s);
    CHECK(other.decide(3, 2 * second - 1, decision));
    CHECK(decision.retry_after == 1s + 1us);
    CHECK_FALSE(other.decide(3, 2 * second, decision));
    other.refused(take(other, 3, second, rejected), told, 1s);
    other.forget_refusal();
    CHECK_FALSE(other.decide(3, second, decision));
}

TEST_CASE("of a limit that gives a whole take again in no time nobody asks for single units") {
    Lease lease;
    LeaseAsk ask = take(lease, 1, 0, admitted);  // the next take is of two
    ask = lease.ask(1, second, size);
    REQUIRE(ask.amount == 2);
    REQUIRE(ask.shrink({.allowed = false, .limit = 100, .remaining = 0, .retry_after = 20us}));
    Decision decision{.allowed = false, .limit = 100, .retry_after = 10us};
    lease.answered(ask, decision, 0s, size);
    lease.refused(ask, decision, 1s);
    CHECK(decision.retry_after == 20us);  // one unit would be there in 10 us, both in 20
    CHECK(lease.decide(1, second + 19, decision));
    CHECK(decision.retry_after == 1us);
    CHECK_FALSE(lease.decide(1, second + 20, decision));
    CHECK(lease.ask(1, second + 20, size).amount == 2);
}

TEST_CASE("what such a limit had left is used up before it is asked again") {
    Lease lease;
    LeaseAsk ask = take(lease, 1, 0, admitted);
    lease.answered(lease.ask(1, 0, size), admitted, 10s, size);  // the next take is of four
    while (lease.left() > 0) {
        Decision decision;
        REQUIRE(lease.decide(1, 0, decision));
    }
    ask = lease.ask(1, second, size);
    REQUIRE(ask.amount == 4);
    REQUIRE(ask.shrink({.allowed = false, .limit = 100, .remaining = 3, .retry_after = 10us}));
    lease.answered(ask, admitted, 10s, size);
    Decision decision;
    REQUIRE(lease.decide(2, second, decision));
    CHECK(decision.allowed);
    REQUIRE(lease.decide(1, second, decision));
    CHECK(decision.retry_after == 10us);
    CHECK_FALSE(lease.decide(1, second + 10, decision));
}

TEST_CASE("a lease of windows ends with them, one of what comes back bit by bit lasts") {
    for (const bool of_windows : {true, false}) {
        Lease lease(of_windows);
        lease.answered(lease.ask(1, 0, size), admitted, 10s, size);
        lease.answered(lease.ask(1, 0, size), admitted, 10s, size);
        CHECK(lease.left() == 1);
        CHECK(lease.has_ended(60 * second) == of_windows);
    }
}

TEST_CASE("a cost that can never pass is told so for as long as it is believed") {
    Decision hopeless{.allowed = false, .limit = 100, .remaining = 100, .retry_after = penstock::never};
    Lease lease;
    const LeaseAsk ask = lease.ask(101, second, size);
    CHECK_FALSE(ask.takes);
    lease.answered(ask, hopeless, 0s, size);
    lease.refused(ask, hopeless, 1s);
    Decision decision;
    REQUIRE(lease.decide(101, 2 * second - 1, decision));
    CHECK(decision.retry_after == penstock::never);
    CHECK_FALSE(lease.decide(101, 2 * second, decision));
}

TEST_CASE("rejected with more than the cost, a caller asks for what the store has, and then for the cost alone") {
    LeaseAsk ask{.cost = 2, .amount = 8};
    CHECK(ask.shrink({.allowed = false, .remaining = 5}));
    CHECK(ask.amount == 5);
    CHECK(ask.shrink({.allowed = false, .remaining = 3}));
    CHECK(ask.amount == 2);
    CHECK_FALSE(ask.shrink({.allowed = false, .remaining = 1}));

    LeaseAsk none_left{.cost = 2, .amount = 8};
    CHECK(none_left.shrink({.allowed = false, .remaining = 1}));
    CHECK(none_left.amount == 2);
    LeaseAsk enough{.cost = 2, .amount = 8};
    CHECK_FALSE(enough.shrink({.allowed = true, .remaining = 1}));
    LeaseAsk renewal{.cost = 0, .amount = 8};
    CHECK_FALSE(renewal.shrink({.allowed = false, .remaining = 1}));
}

TEST_CASE("after a rest it begins with as much as was used, at least one unit and at most the size") {
    Lease lease = holding(5);
    lease.rest(size);
    CHECK(lease.release() == 5);
    CHECK(take(lease, 1, 0).amount == size);  // more than that was used on the way

    Lease little;
    (void)take(little, 3, 0);
    little.rest(size);
    CHECK(take(little, 1, 0).amount == 3);
    little.rest(size);
    little.rest(size);
    CHECK(take(little, 1, 0).amount == 1);
}

TEST_CASE("what algorithms say of giving back") {
    using penstock::detail::refundable_for;
    const Decision decision{.allowed = true, .limit = 10, .reset_after = 1500ms};
    const TokenBucket bucket{.capacity = 10, .refill = penstock::per_second(4)};
    const TokenBucket slow{.capacity = 10, .refill = penstock::per_minute(1)};
    const FixedWindow fixed{.limit = 10, .window = 1s};
    const SlidingWindow sliding{.limit = 10, .window = 1s};
    CHECK(refundable_for<TokenBucket>(plan(bucket), decision) == 1500ms);
    CHECK(refundable_for<FixedWindow>(plan(fixed), decision) == 1500ms);
    CHECK(refundable_for<SlidingWindow>(plan(sliding), decision) == 500ms);
    CHECK(refundable_for<SlidingWindow>(plan(sliding), {.reset_after = 900ms}) == 0s);
    CHECK(refundable_for<AllOf<SlidingWindow>>(plan(AllOf{sliding}), decision) == 500ms);
    CHECK(refundable_for<AllOf<TokenBucket, TokenBucket>>(plan(AllOf{slow, bucket}), decision) == 250ms);
    CHECK(refundable_for<AllOf<TokenBucket, TokenBucket>>(plan(AllOf{slow, slow}), decision) == 1500ms);
    CHECK(refundable_for<AllOf<TokenBucket, FixedWindow>>(plan(AllOf{bucket, fixed}), decision) == 0s);
    CHECK(refundable_for<support::Quota>(plan(support::Quota{10}), decision) == 0s);
}

TEST_CASE("leases are for plans of which all gateways together hold a small part") {
    using penstock::detail::is_leased;
    const LeasedOptions options{.size = 10, .gateways = 4};  // 40 are 5% of 800
    const FixedWindow enough{.limit = 800, .window = 1s};
    const SlidingWindow small{.limit = 799, .window = 1s};
    const TokenBucket bucket{.capacity = 1000, .refill = penstock::per_second(1)};
    CHECK(is_leased(plan(enough), options));
    CHECK_FALSE(is_leased(plan(small), options));
    CHECK(is_leased(plan(AllOf{bucket, enough}), options));
    CHECK_FALSE(is_leased(plan(AllOf{bucket, small}), options));
    CHECK(is_leased(plan(small), {.size = 10, .gateways = 4, .largest_share = 6}));
    CHECK_FALSE(is_leased(plan(support::Quota{1'000'000}), options));  // tells no limit
    CHECK_FALSE(is_leased(plan(AllOf{support::Quota{1'000'000}}), options));
}

TEST_CASE("options out of range are refused by name") {
    const auto text = [](const LeasedOptions& options) {
        return text_of([&] { penstock::detail::validate_leased(options); });
    };
    CHECK(text({.size = 0}) == "Leased.size is 0: allowed is 1 to 1000000");
    CHECK(text({.size = 1'000'001}) == "Leased.size is 1000001: allowed is 1 to 1000000");
    CHECK(text({.gateways = 0}) == "Leased.gateways is 0: allowed is 1 to 1000000");
    CHECK(text({.gateways = 1'000'001}) == "Leased.gateways is 1000001: allowed is 1 to 1000000");
    CHECK(text({.largest_share = 0}) == "Leased.largest_share is 0: allowed is 1 to 100");
    CHECK(text({.largest_share = 101}) == "Leased.largest_share is 101: allowed is 1 to 100");
    CHECK(text({.idle_return = 0us}) == "Leased.idle_return is 0 us: allowed is 1 us to 3600000000 us");
    CHECK(text({.max_age = -1us}) == "Leased.max_age is -1 us: allowed is 0 us to 3600000000 us");
    CHECK(text({.max_age = 2h}) == "Leased.max_age is 7200000000 us: allowed is 0 us to 3600000000 us");
    CHECK(text({.entries = 63}) == "Leased.entries is 63: allowed is 64 to 67108864");
    CHECK(text({.return_timeout = 61s}) == "Leased.return_timeout is 61000000 us: allowed is 0 us to 60000000 us");
    CHECK(text({}) == "(not refused)");
}

}  // namespace
