// SPDX-License-Identifier: MIT
// Many threads on one key: exactly the limit is admitted, and every unit is given to one of them alone.
#include "../support/expect.hpp"
#include "../support/random.hpp"
#include "../support/storages.hpp"
#include "../support/threads.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::per_hour;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using Decisions = std::vector<Decision>;
using Units = std::vector<std::uint64_t>;

constexpr std::uint64_t limit = 1000;
constexpr TokenBucket bucket{.capacity = limit, .refill = per_hour(1)};
constexpr SlidingWindow sliding{.limit = limit, .window = 1h};
constexpr FixedWindow fixed{.limit = limit, .window = 1h};
const AllOf several{bucket, FixedWindow{.limit = limit + 500, .window = 1h}};

Units counted(std::uint64_t from, std::uint64_t to) {
    Units units(to - from);
    std::iota(units.begin(), units.end(), from);
    return units;
}

/// What the allowed decisions left, in order.
Units left_by_allowed(const Decisions& decisions) {
    Units left;
    for (const Decision& decision : decisions) {
        if (decision.allowed) {
            left.push_back(decision.remaining);
        }
    }
    std::sort(left.begin(), left.end());
    return left;
}

void check_that_each_unit_was_given_once(const Decisions& decisions) {
    CHECK(left_by_allowed(decisions) == counted(0, limit));
    CHECK(std::all_of(decisions.begin(), decisions.end(), [](const Decision& decision) {
        return decision.allowed || (decision.remaining == 0 && decision.retry_after > 0us);
    }));
}

// Again and again, since threads seldom meet twice in the same way. The storages of a program are alike in how slow
// they are.
constexpr unsigned rounds =
    (std::max)(1U, 10 / std::tuple_element_t<0, std::tuple<PENSTOCK_STORAGES_UNDER_TEST>>::slowness);

/// Runs `test(algorithm)` for one of each kind, so many times.
template <class Test>
void for_each_algorithm(const Test& test) {
    for (unsigned round = 0; round < rounds; ++round) {
        test(bucket);
        test(sliding);
        test(fixed);
        test(several);
    }
}

TEST_CASE_TEMPLATE("threads cannot spend a unit twice", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    for_each_algorithm([](const auto& algorithm) {
        Limiter limiter{algorithm, Storage::fresh(), ManualClock{}};
        const auto decisions = threads::results_of(16, [&](std::size_t) {
            Decisions mine(limit);
            std::generate(mine.begin(), mine.end(), [&] { return limiter.check("key"); });
            return mine;
        });
        check_that_each_unit_was_given_once(threads::joined(decisions));
    });
}

TEST_CASE_TEMPLATE("batches cannot spend a unit twice", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    for_each_algorithm([](const auto& algorithm) {
        Limiter limiter{algorithm, Storage::fresh(), ManualClock{}};
        const auto decisions = threads::results_of(4, [&](std::size_t) {
            Decisions mine(limit);
            const std::vector<Check> checks(limit, Check{.key = "key"});
            for (std::size_t begin = 0; begin < limit; begin += 50) {
                limiter.check(std::span(checks).subspan(begin, 50), std::span(mine).subspan(begin, 50));
            }
            return mine;
        });
        check_that_each_unit_was_given_once(threads::joined(decisions));
    });
}

TEST_CASE_TEMPLATE("what remains is the limit less every cost admitted", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    for_each_algorithm([](const auto& algorithm) {
        Limiter limiter{algorithm, Storage::fresh(), ManualClock{}};
        const auto taken = threads::results_of(4, [&](std::size_t thread) {
            support::Random random(thread);
            std::uint64_t mine = 0;
            for (int i = 0; i < 1000; ++i) {
                const std::uint64_t cost = random.below(9);
                mine += limiter.check("key", cost).allowed ? cost : 0;
                (void)limiter.peek("key", cost);
            }
            return mine;
        });
        CHECK(limiter.peek("key", 0).remaining ==
              limit - std::accumulate(taken.begin(), taken.end(), std::uint64_t{0}));
    });
}

/// Threads that use a plan of the whole limit and one of a part of it by turns: how much was used after each admission.
template <class Storage, class Algorithm>
void check_that_plans_share_what_is_used(const Algorithm& whole, const Algorithm& part) {
    constexpr std::uint64_t part_limit = 600;
    Limiter limiter{whole, Storage::fresh(), ManualClock{}};
    const auto plan_of_part = penstock::plan(part);
    const auto used = threads::results_of(4, [&](std::size_t) {
        Units mine;
        for (std::uint64_t i = 0; i < limit; ++i) {
            if (const Decision d = limiter.check("key", plan_of_part); d.allowed) {
                mine.push_back(part_limit - d.remaining);
            }
            if (const Decision d = limiter.check("key"); d.allowed) {
                mine.push_back(limit - d.remaining);
            }
        }
        return mine;
    });
    Units all = threads::joined(used);
    std::sort(all.begin(), all.end());
    CHECK(all == counted(1, limit + 1));
    CHECK(limiter.check("key", plan_of_part) == expect::rejected().limit(part_limit).remaining(0));
}

TEST_CASE_TEMPLATE("threads with different plans share what is used", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr TokenBucket part_of_bucket{.capacity = 600, .refill = per_hour(1)};
    constexpr FixedWindow part_of_fixed{.limit = 600, .window = 1h};
    for (unsigned round = 0; round < rounds; ++round) {
        check_that_plans_share_what_is_used<Storage>(bucket, part_of_bucket);
        check_that_plans_share_what_is_used<Storage>(sliding, SlidingWindow{.limit = 600, .window = 1h});
        check_that_plans_share_what_is_used<Storage>(fixed, part_of_fixed);
        check_that_plans_share_what_is_used<Storage>(AllOf{bucket, fixed}, AllOf{part_of_bucket, part_of_fixed});
    }
}

TEST_CASE_TEMPLATE("a bucket refills exactly while the clock moves", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    constexpr std::uint64_t capacity = 100'000 / Storage::slowness;
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = capacity, .refill = penstock::per(10, 13ms)}, Storage::fresh(), clock};
    CHECK(limiter.check("key", capacity) == expect::allowed(0));

    // In all that time less is refilled than the bucket holds: nothing is spilled.
    constexpr std::uint64_t threads_at_once = 4;
    constexpr std::uint64_t steps_of_each = 30'000 / Storage::slowness;
    const auto taken = threads::results_of(threads_at_once, [&](std::size_t) {
        std::uint64_t mine = 0;
        for (std::uint64_t step = 0; step < steps_of_each; ++step) {
            mine += expect::allowed_of(3, limiter, "key");
            clock.advance(997us);
        }
        return mine + expect::allowed_of(capacity, limiter, "key");
    });
    CHECK(std::accumulate(taken.begin(), taken.end(), std::uint64_t{0}) ==
          threads_at_once * steps_of_each * 997 * 10 / 13'000);
}

}  // namespace
