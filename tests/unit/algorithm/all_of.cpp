// SPDX-License-Identifier: MIT
#include <penstock/algorithm/all_of.hpp>

#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>

#include <doctest/doctest.h>

#include "../../support/archetypes.hpp"
#include "../../support/client.hpp"
#include "../../support/decisions.hpp"
#include "../../support/print.hpp"
#include "../../support/refusal.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace {

using namespace std::chrono_literals;
using penstock::Align;
using penstock::AllOf;
using penstock::FixedWindow;
using penstock::never;
using penstock::per;
using penstock::per_hour;
using penstock::per_second;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using support::allowed;
using support::Client;
using support::largest_limit;
using support::longest_period;
using support::refusal;
using support::rejected;
using support::same_bits;

constexpr std::uint64_t largest_cost = (std::numeric_limits<std::uint64_t>::max)();

constexpr TokenBucket bucket{.capacity = 3, .refill = per_second(1)};
constexpr FixedWindow window{.limit = 5, .window = 10s};

TEST_CASE("a cost passes only if every part admits it") {
    Client client(AllOf{bucket, window});
    CHECK(client.check(0s, 3) == allowed(3, 0, 3s));
    CHECK(client.check(0s, 1) == rejected(3, 0, 1s, 3s));  // by the bucket
    CHECK(client.check(2s, 2) == allowed(3, 0, 3s));
    CHECK(client.check(5s, 1) == rejected(5, 0, 5s, 5s));  // by the window
    CHECK(client.check(10s, 3) == allowed(3, 0, 3s));
}

TEST_CASE("several limits decide at compile time") {
    constexpr auto blocked = [] {
        Client client(AllOf{bucket, window});
        (void)client.check(0s, 3);
        return client.check(0s, 1);
    }();
    static_assert(blocked == rejected(3, 0, 1s, 3s));
    CHECK(blocked == rejected(3, 0, 1s, 3s));
}

TEST_CASE("a rejection by any part takes nothing from the others") {
    SUBCASE("the last rejects") {
        Client client(AllOf{bucket, SlidingWindow{.limit = 9, .window = 10s}, FixedWindow{.limit = 1, .window = 10s}});
        CHECK(client.check(0s, 1).allowed);
        const auto before = client.state();
        CHECK(client.check(0s, 1) == rejected(1, 0, 10s, 10s));
        CHECK(same_bits(client.state(), before));
    }
    SUBCASE("the first rejects") {
        Client client(AllOf{FixedWindow{.limit = 1, .window = 10s}, SlidingWindow{.limit = 9, .window = 10s}, bucket});
        CHECK(client.check(0s, 1).allowed);
        const auto before = client.state();
        CHECK(client.check(0s, 1) == rejected(1, 0, 10s, 10s));
        CHECK(same_bits(client.state(), before));
    }
    SUBCASE("the one in the middle can never admit it") {
        Client client(AllOf{bucket, FixedWindow{.limit = 1, .window = 10s}, window});
        CHECK(client.check(0s, 2) == rejected(1, 1, never, 0s));
        CHECK(same_bits(client.state(), decltype(client)::State{}));
    }
}

TEST_CASE("a cost of zero is allowed and changes nothing") {
    Client client(AllOf{bucket, window});
    CHECK(client.check(0s, 3).allowed);
    const auto before = client.state();
    CHECK(client.check(1s, 0) == allowed(3, 1, 2s));
    CHECK(client.check(60s, 0) == allowed(3, 3, 0s));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("when allowed, the part with the least remaining is reported") {
    Client client(AllOf{TokenBucket{.capacity = 20, .refill = per_second(1)}, window});
    CHECK(client.check(0s, 0) == allowed(5, 5, 0s));
    CHECK(client.check(0s, 2) == allowed(5, 3, 10s));
    CHECK(client.check(20s, 5) == allowed(5, 0, 10s));
    CHECK(client.check(30s, 5) == allowed(5, 0, 10s));

    Client other(AllOf{window, TokenBucket{.capacity = 20, .refill = per_second(1)}});
    CHECK(other.check(0s, 2) == allowed(5, 3, 10s));
}

TEST_CASE("when allowed, the first of equals is reported") {
    Client client(AllOf{FixedWindow{.limit = 5, .window = 20s}, FixedWindow{.limit = 5, .window = 10s}});
    CHECK(client.check(0s, 2) == allowed(5, 3, 20s));
    Client other(AllOf{FixedWindow{.limit = 5, .window = 10s}, FixedWindow{.limit = 5, .window = 20s}});
    CHECK(other.check(0s, 2) == allowed(5, 3, 10s));
}

TEST_CASE("when rejected, the part with the longest wait is reported, and the least remaining of all") {
    // Empty, but soon refilled; the window has one left and long to go.
    Client client(AllOf{bucket, FixedWindow{.limit = 4, .window = 1min}});
    CHECK(client.check(0s, 3) == allowed(3, 0, 3s));
    CHECK(client.check(0s, 2) == rejected(4, 0, 1min, 1min));
    CHECK(client.check(0s, 1) == rejected(3, 0, 1s, 3s));
    CHECK(client.check(2s, 2) == rejected(4, 1, 58s, 58s));
}

TEST_CASE("when rejected, the first of equal waits is reported") {
    Client client(AllOf{FixedWindow{.limit = 2, .window = 10s}, FixedWindow{.limit = 1, .window = 10s}});
    CHECK(client.check(0s, 1) == allowed(1, 0, 10s));
    CHECK(client.check(0s, 2) == rejected(1, 0, never, 10s));
    CHECK(client.check(0s, 1) == rejected(1, 0, 10s, 10s));
    Client other(AllOf{FixedWindow{.limit = 2, .window = 10s}, FixedWindow{.limit = 3, .window = 10s}});
    CHECK(other.check(0s, 2) == allowed(2, 0, 10s));
    CHECK(other.check(0s, 2) == rejected(2, 0, 10s, 10s));
}

TEST_CASE("never is the longest wait, and the first never is reported") {
    Client client(AllOf{TokenBucket{.capacity = 4, .refill = per_hour(1)}, FixedWindow{.limit = 2, .window = 1s}});
    CHECK(client.check(0s, 3) == rejected(2, 2, never, 0s));
    CHECK(client.check(0s, 5) == rejected(4, 2, never, 0s));
    CHECK(client.check(0s, largest_cost) == rejected(4, 2, never, 0s));

    CHECK(client.check(0s, 2) == allowed(2, 0, 1s));
    CHECK(client.check(0s, 3) == rejected(2, 0, never, 1s));  // an hour is nothing against it
}

TEST_CASE("a part alone decides as it does on its own") {
    Client one(AllOf{bucket});
    Client same(bucket);
    const auto agree = [](const penstock::Decision& a, const penstock::Decision& b) {
        CHECK(a == b);
        return a.allowed;
    };
    CHECK(agree(one.check(0s, 2), same.check(0s, 2)));
    CHECK_FALSE(agree(one.check(0s, 2), same.check(0s, 2)));
    CHECK_FALSE(agree(one.check(0s, 4), same.check(0s, 4)));
    CHECK_FALSE(agree(one.charge(1s, 4), same.charge(1s, 4)));
    CHECK(agree(one.refund(1s, 1), same.refund(1s, 1)));
    CHECK(one.reserve(2s, 10s, 1) == same.reserve(2s, 10s, 1));
    CHECK(one.reserve(2s, 1s, 3) == same.reserve(2s, 1s, 3));
    CHECK(penstock::detail::get<0>(one.state()) == same.state());
}

TEST_CASE("up to five parts decide together") {
    const auto of = [](std::uint64_t limit) { return FixedWindow{.limit = limit, .window = 10s}; };
    Client two(AllOf{of(6), of(5)});
    Client three(AllOf{of(6), of(5), of(4)});
    Client four(AllOf{of(6), of(5), of(4), of(3)});
    Client five(AllOf{of(6), of(5), of(4), of(3), of(2)});
    CHECK(two.check(0s) == allowed(5, 4, 10s));
    CHECK(three.check(0s) == allowed(4, 3, 10s));
    CHECK(four.check(0s) == allowed(3, 2, 10s));
    CHECK(five.check(0s) == allowed(2, 1, 10s));
    CHECK(five.check(0s, 2) == rejected(2, 1, 10s, 10s));
    CHECK(five.check(0s, 3) == rejected(2, 1, never, 10s));
}

TEST_CASE("five parts at the bounds of the contract count every unit and microsecond") {
    Client client(AllOf{TokenBucket{.capacity = largest_limit, .refill = per_second(10'000'000)},
                        TokenBucket{.capacity = largest_limit, .refill = per(1, 8'191us)},
                        SlidingWindow{.limit = largest_limit, .window = longest_period},
                        FixedWindow{.limit = largest_limit, .window = longest_period},
                        FixedWindow{.limit = largest_limit, .window = 1us}});
    CHECK(client.check(0us, largest_limit) == allowed(largest_limit, 0, 54'975'581'389us));
    CHECK(client.check(0us, largest_limit) ==
          rejected(largest_limit, 0, largest_limit * 8'191us, largest_limit * 8'191us));
    CHECK(client.check(largest_limit * 8'191us, largest_limit) == allowed(largest_limit, 0, 54'975'581'389us));
}

TEST_CASE("limits may be nested") {
    Client client(AllOf{AllOf{bucket, window}, SlidingWindow{.limit = 4, .window = 10s}});
    CHECK(client.check(0s, 3) == allowed(3, 0, 3s));
    CHECK(client.check(2s, 1) == allowed(4, 0, 18s));
    CHECK(client.check(2s, 1) == rejected(4, 0, 10'500ms, 18s));
}

TEST_CASE("each part takes its own from a plan change") {
    Client client(AllOf{bucket, window});
    CHECK(client.check(0s, 3).allowed);
    client.use(AllOf{TokenBucket{.capacity = 5, .refill = per_second(1)}, FixedWindow{.limit = 4, .window = 1min}});
    CHECK(client.check(0s, 1) == allowed(4, 0, 1min));
    client.use(AllOf{bucket, window});
    CHECK(client.check(0s, 0) == allowed(3, 0, 4s));
}

TEST_CASE("only the parts that are staggered look at the phase") {
    const FixedWindow staggered{.limit = 5, .window = 10s, .align = Align::staggered};
    Client client(AllOf{FixedWindow{.limit = 9, .window = 10s}, staggered}, 4'000'000);
    CHECK(client.check(0s, 4) == allowed(5, 1, 4s));
    CHECK(client.check(4s, 5) == allowed(9, 0, 6s));

    CHECK(penstock::plan(AllOf{window, staggered}).staggered());
    CHECK(penstock::plan(AllOf{AllOf{bucket, staggered}, window}).staggered());
    CHECK_FALSE(penstock::plan(AllOf{bucket, window}).staggered());
}

TEST_CASE("a refund gives back to every part") {
    Client client(AllOf{bucket, window});
    CHECK(client.check(0s, 3).allowed);
    CHECK(client.refund(0s, 2) == allowed(3, 2, 1s));
    CHECK(client.check(0s, 2) == allowed(3, 0, 3s));
    CHECK(client.check(2s, 2) == allowed(3, 0, 3s));
    CHECK(client.refund(2s, largest_cost) == allowed(3, 3, 0s));
    CHECK(client.check(2s, 3) == allowed(3, 0, 3s));
}

TEST_CASE("a charge takes from every part past its limit, and reports like a check") {
    Client client(AllOf{bucket, window});
    CHECK(client.charge(0s, 3) == allowed(3, 0, 3s));
    CHECK(client.charge(0s, 1) == rejected(3, 0, 1s, 4s));
    CHECK(client.charge(0s, 2) == rejected(5, 0, 10s, 10s));
    CHECK(client.refund(0s, 3) == allowed(3, 0, 3s));
    CHECK(client.check(3s, 2) == allowed(5, 0, 7s));
}

TEST_CASE("a reservation waits for the part that takes longest") {
    Client client(AllOf{TokenBucket{.capacity = 2, .refill = per_second(1)},
                        TokenBucket{.capacity = 3, .refill = per_second(2)}});
    CHECK(client.reserve(0s, 10s) == penstock::Reservation{allowed(2, 1, 1s), 0s});
    CHECK(client.reserve(0s, 10s) == penstock::Reservation{allowed(2, 0, 2s), 0s});
    CHECK(client.reserve(0s, 10s) == penstock::Reservation{allowed(2, 0, 3s), 1s});
    CHECK(client.reserve(0s, 10s) == penstock::Reservation{allowed(2, 0, 4s), 2s});

    const auto before = client.state();
    CHECK(client.reserve(0s, 10s) == penstock::Reservation{rejected(2, 0, 3s, 4s), 0s});
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a reservation that one part cannot give takes nothing from any") {
    Client client(
        AllOf{TokenBucket{.capacity = 5, .refill = per_second(1)}, TokenBucket{.capacity = 1, .refill = per(1, 10s)}});
    CHECK(client.reserve(0s, 0s) == penstock::Reservation{allowed(1, 0, 10s), 0s});
    const auto before = client.state();
    CHECK(client.reserve(0s, 9'999'999us) == penstock::Reservation{rejected(1, 0, 10s, 10s), 0s});
    CHECK(client.reserve(0s, never, 2) == penstock::Reservation{rejected(1, 0, never, 10s), 0s});
    CHECK(same_bits(client.state(), before));
    CHECK(client.reserve(0s, 10s) == penstock::Reservation{allowed(1, 0, 20s), 10s});
    CHECK(client.reserve(0s, never, 0) == penstock::Reservation{allowed(1, 0, 20s), 0s});
}

TEST_CASE("limits can do together what each of them can") {
    using Buckets = AllOf<TokenBucket, TokenBucket>;
    using Mixed = AllOf<TokenBucket, FixedWindow, SlidingWindow>;
    using WithOwn = AllOf<TokenBucket, support::Quota>;
    CHECK(penstock::Algorithm<Buckets>);
    CHECK(penstock::Reservable<Buckets>);
    CHECK(penstock::Refundable<Mixed>);
    CHECK(penstock::Chargeable<Mixed>);
    CHECK(penstock::Expiring<Mixed>);
    CHECK_FALSE(penstock::Reservable<Mixed>);
    CHECK(penstock::Algorithm<WithOwn>);
    CHECK_FALSE(penstock::Refundable<WithOwn>);
    CHECK_FALSE(penstock::Chargeable<WithOwn>);
    CHECK_FALSE(penstock::Reservable<WithOwn>);
    CHECK(penstock::Expiring<WithOwn>);
}

TEST_CASE("a client is not fresh as long as a part does not tell when it is") {
    Client client(AllOf{bucket, support::Quota{.units = 4}});
    CHECK(client.check(0s, 1).allowed);
    using Limits = AllOf<TokenBucket, support::Quota>;
    CHECK(Limits::fresh_at(client.state()) == ~penstock::Micros{0});
    CHECK(Limits::paid_off_at(client.state()) < ~penstock::Micros{0});
}

TEST_CASE("a part may be an algorithm of the user's own") {
    Client client(AllOf{bucket, support::Quota{.units = 4}});
    CHECK(client.check(0s, 3) == allowed(3, 0, 3s));
    CHECK(client.check(3s, 2) == rejected(4, 1, never, never));
    CHECK(client.check(3s, 1) == allowed(4, 0, never));

    Client unlimited(AllOf{support::Quota{.units = largest_cost}});
    CHECK(unlimited.check(0s, 0) == allowed(largest_cost, largest_cost, 0s));
}

TEST_CASE("all parts decide when a client is fresh, not the reported one alone") {
    Client client(
        AllOf{TokenBucket{.capacity = 1, .refill = penstock::per_second(1)}, FixedWindow{.limit = 2, .window = 24h}});
    CHECK(client.check(0s, 1) == allowed(1, 0, 1s));
    CHECK(AllOf<TokenBucket, FixedWindow>::fresh_at(client.state()) >= 86'400'000'000);
    CHECK(AllOf<TokenBucket, FixedWindow>::paid_off_at(client.state()) >= 43'200'000'000);
}

TEST_CASE("the types of the parts need not be written") {
    CHECK(std::is_same_v<decltype(AllOf{bucket}), AllOf<TokenBucket>>);
    CHECK(std::is_same_v<decltype(AllOf{bucket, window}), AllOf<TokenBucket, FixedWindow>>);
    CHECK(std::is_same_v<decltype(AllOf{AllOf{bucket}, window}), AllOf<AllOf<TokenBucket>, FixedWindow>>);
}

TEST_CASE("a plan gives back the parts it was made of, in their order") {
    const AllOf all{bucket, window, FixedWindow{.limit = 7, .window = 24h, .align = Align::staggered, .offset = -2h}};
    CHECK(penstock::plan(all).algorithm() == all);
    CHECK(penstock::plan(all).part<0>().algorithm() == bucket);
    CHECK(penstock::plan(all).part<1>().algorithm() == window);
    CHECK(penstock::plan(AllOf{all, bucket}).algorithm() == AllOf{all, bucket});
    CHECK(AllOf{bucket, bucket} != AllOf{bucket, TokenBucket{.capacity = 4, .refill = per_second(1)}});
}

TEST_CASE("a wrong part is refused by its own name, wherever it stands") {
    const AllOf valid{bucket, window};
    CHECK(refusal(AllOf{TokenBucket{.capacity = 0, .refill = per_second(1)}, window}, valid) ==
          "TokenBucket.capacity is 0: allowed is 1 to 549755813888");
    CHECK(refusal(AllOf{bucket, FixedWindow{.limit = 0, .window = 1s}}, valid) ==
          "FixedWindow.limit is 0: allowed is 1 to 549755813888");
}

}  // namespace
