// SPDX-License-Identifier: MIT
// What is divided adds up again.
#include <penstock/guard/share.hpp>

#include "../../support/random.hpp"
#include "../../support/refusal.hpp"

#include <penstock/concepts.hpp>
#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::FixedWindow;
using penstock::share_of;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using support::text_of;

constexpr std::uint64_t largest = ~std::uint64_t{0};

TEST_CASE("equal shares add up to the limit, and none is more than one from another") {
    for (const std::uint64_t limit :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{999}, largest}) {
        for (std::uint64_t n = 1; n < 40; ++n) {
            std::uint64_t sum = 0;
            for (std::uint64_t i = 0; i < n; ++i) {
                const std::uint64_t share = share_of(limit, i, n);
                CHECK(share >= limit / n);
                CHECK(share - limit / n <= 1);
                sum += share;
            }
            CHECK(sum == limit);
        }
    }
}

TEST_CASE("the last share is never smaller than another: all of less than a unit each") {
    CHECK(share_of(1, 0, 3) == 0);
    CHECK(share_of(1, 1, 3) == 0);
    CHECK(share_of(1, 2, 3) == 1);
    CHECK(share_of(10, 2, 3) == 4);
    static_assert(share_of(10, 0, 3) + share_of(10, 1, 3) + share_of(10, 2, 3) == 10);
}

TEST_CASE("shares by weight add up to the limit, each within one of its part") {
    support::Random random(7);
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::uint64_t> weights(random.between(1, 12));
        std::uint64_t sum_of_weights = 0;
        for (std::uint64_t& weight : weights) {
            weight = random.below(1000);
            sum_of_weights += weight;
        }
        if (sum_of_weights == 0) {
            continue;
        }
        const std::uint64_t limit = random.log_between(0, 1U << 30);
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const std::uint64_t share = share_of(limit, weights, i);
            CHECK(share >= limit * weights[i] / sum_of_weights);
            CHECK(share <= limit * weights[i] / sum_of_weights + 1);
            sum += share;
        }
        CHECK(sum == limit);
    }
}

TEST_CASE("who has no weight has no share") {
    const std::array<std::uint64_t, 3> weights{3, 0, 1};
    CHECK(share_of(100, weights, 0) == 75);
    CHECK(share_of(100, weights, 1) == 0);
    CHECK(share_of(100, weights, 2) == 25);
}

TEST_CASE("weights may be as large as numbers go, but not their sum") {
    const std::array<std::uint64_t, 2> large{largest / 2, largest / 2 + 1};
    CHECK(share_of(10, large, 0) + share_of(10, large, 1) == 10);
    const std::array<std::uint64_t, 2> too_large{largest, 1};
    CHECK(text_of([&] { (void)share_of(10, too_large, 0); }) ==
          "share_of.weights is a sum above 2^64 - 1: allowed is a sum of 1 to 18446744073709551615");
}

TEST_CASE("a share that is none of them is refused") {
    CHECK(text_of([&] { (void)share_of(10, 3, 3); }) == "share_of.i is 3: allowed is 0 to 2");
    CHECK(text_of([&] { (void)share_of(10, 0, 0); }) == "share_of.i is 0: allowed is none of 0 shares");
    const std::array<std::uint64_t, 2> none{0, 0};
    CHECK(text_of([&] { (void)share_of(10, none, 0); }) ==
          "share_of.weights is a sum of 0: allowed is a sum of 1 to 18446744073709551615");
    CHECK(text_of([&] { (void)share_of(10, none, 2); }) ==
          "share_of.i is 2: allowed is below the number of weights, 2");
    CHECK(text_of([&] { (void)share_of(10, std::span<const std::uint64_t>{}, 0); }) ==
          "share_of.i is 0: allowed is below the number of weights, 0");
}

TEST_CASE("a bucket's shares have its capacity together, and an equal part of its refill each") {
    const TokenBucket whole{.capacity = 10, .refill = penstock::per_second(100)};
    const TokenBucket first = whole.share(0, 3);
    const TokenBucket last = whole.share(2, 3);
    CHECK(first.capacity == 3);
    CHECK(last.capacity == 4);
    CHECK(first.refill == penstock::per(1, 30ms));
    CHECK(last.refill == first.refill);
    CHECK(whole.share(0, 1) == TokenBucket{.capacity = 10, .refill = penstock::per(1, 10ms)});
}

TEST_CASE("any share that is not empty makes a plan") {
    support::Random random(11);
    const std::chrono::microseconds longest{std::int64_t{1} << 45};
    const TokenBucket slow{.capacity = 100, .refill = penstock::per(1, longest / 2)};
    CHECK(slow.share(99, 100).refill == penstock::per(1, longest));
    for (int round = 0; round < 20'000; ++round) {
        const TokenBucket whole{
            .capacity = random.log_between(1, std::uint64_t{1} << 39),
            .refill = penstock::per(random.log_between(1, std::uint64_t{1} << 39),
                                    std::chrono::microseconds{random.log_between(1, std::uint64_t{1} << 45)})};
        try {
            (void)penstock::plan(whole);
        } catch (const std::invalid_argument&) {
            continue;
        }
        const std::uint64_t n = random.log_between(1, 1'000'000);
        CAPTURE(whole.capacity);
        CAPTURE(n);
        CHECK_NOTHROW((void)penstock::plan(whole.share(n - 1, n)));
    }
}

TEST_CASE("windows and what is made of several parts are divided part by part") {
    const FixedWindow fixed{.limit = 10, .window = 1h, .offset = 5s};
    const SlidingWindow sliding{.limit = 7, .window = 1min, .align = penstock::Align::staggered};
    CHECK(fixed.share(2, 3) == FixedWindow{.limit = 4, .window = 1h, .offset = 5s});
    CHECK(sliding.share(0, 2) == SlidingWindow{.limit = 3, .window = 1min, .align = penstock::Align::staggered});
    CHECK(AllOf{fixed, sliding}.share(1, 2) == AllOf{fixed.share(1, 2), sliding.share(1, 2)});
    static_assert(penstock::Shareable<AllOf<FixedWindow, SlidingWindow>>);
    static_assert(penstock::Shareable<TokenBucket>);
}

}  // namespace
