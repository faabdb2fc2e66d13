// SPDX-License-Identifier: MIT
// Checks, batches, peeks, refunds, charges, resets and new parameters, all at the same time: the books balance.
#include "../support/expect.hpp"
#include "../support/random.hpp"
#include "../support/storages.hpp"
#include "../support/threads.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
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

// The storages of a program are alike in how slow they are.
constexpr std::uint64_t slowness = std::tuple_element_t<0, std::tuple<PENSTOCK_STORAGES_UNDER_TEST>>::slowness;

// So far apart from each other that nothing is cut off at twice the lower limit.
constexpr std::uint64_t low = 6000 / slowness;
constexpr std::uint64_t high = 10'000 / slowness;
constexpr std::uint64_t charges = 1000 / slowness;

constexpr std::uint64_t limit = 10;  // of the keys that are reset

constexpr std::uint64_t operations = 25'000 / slowness;

/// Two sets of parameters between which the limiter is configured to and fro.
template <class A>
struct Pair {
    using Algorithm = A;

    A lower;
    A higher;
};

template <class A>
Pair(A, A) -> Pair<A>;

/// Runs `test(pair)` for the parameters of each algorithm.
template <class Test>
void for_each_algorithm(const Test& test) {
    constexpr Pair buckets{TokenBucket{.capacity = low, .refill = per_hour(1)},
                           TokenBucket{.capacity = high, .refill = per_hour(1)}};
    constexpr Pair windows{FixedWindow{.limit = low, .window = 1h}, FixedWindow{.limit = high, .window = 1h}};
    test(buckets);
    test(Pair{SlidingWindow{.limit = low, .window = 1h}, SlidingWindow{.limit = high, .window = 1h}});
    test(windows);
    test(Pair{AllOf{buckets.lower, windows.lower}, AllOf{buckets.higher, windows.higher}});
}

/// What the threads' decisions say has been taken.
class Books {
public:
    void took(std::uint64_t units) { taken_ += units; }
    void gave_back(std::uint64_t units) { given_back_ += units; }
    void odd() { ++oddities_; }

    [[nodiscard]] std::uint64_t used() const { return taken_ - given_back_; }
    [[nodiscard]] std::uint64_t oddities() const { return oddities_; }

private:
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<std::uint64_t> given_back_{0};
    std::atomic<std::uint64_t> oddities_{0};
};

template <class Algorithm, class Limiter>
class Actors {
public:
    Actors(const Pair<Algorithm>& pair, Limiter& limiter) : pair_(pair), limiter_(limiter) {}

    /// Takes, and gives back some of what it has itself.
    void check_and_refund(std::size_t thread) {
        support::Random random(thread);
        const auto lower = penstock::plan(pair_.lower);
        std::uint64_t mine = 0;
        for (std::uint64_t i = 0; i < operations; ++i) {
            const std::uint64_t cost = random.below(4);
            const Decision decision =
                random.below(4) == 0 ? limiter_.check("key", lower, cost) : limiter_.check("key", cost);
            mine += note_taken(decision, cost);
            if (random.below(3) == 0 && mine > 0) {
                const std::uint64_t units = 1 + random.below(mine);
                note(limiter_.refund("key", units));
                books_.gave_back(units);
                mine -= units;
            }
        }
    }

    void check_in_batches() {
        constexpr std::array<Check, 5> checks{Check{.key = "key"},
                                              Check{.key = "other"},
                                              Check{.key = "key", .cost = 2},
                                              Check{.key = "key", .cost = high + 1},
                                              Check{.key = "key", .cost = 0}};
        std::array<Decision, checks.size()> decisions;
        for (std::uint64_t i = 0; i < operations / 4; ++i) {
            limiter_.check(checks, decisions);
            note_taken(decisions[0], 1);
            note_taken(decisions[2], 2);
            expect_of(!decisions[3].allowed && decisions[3].retry_after == penstock::never);
            expect_of(decisions[4].allowed);
        }
    }

    void charge() {
        for (std::uint64_t i = 0; i < operations; ++i) {
            const bool now = i % (operations / charges) == 0;
            note(now ? limiter_.charge("key", 1) : limiter_.peek("key", i));
            books_.took(now ? 1 : 0);
        }
    }

    /// As long as any of so many others is at work.
    void configure(unsigned others) {
        for (std::uint64_t i = 0; i < operations || done_ < others; ++i) {
            limiter_.configure(i % 2 == 0 ? pair_.higher : pair_.lower);
            std::this_thread::yield();
        }
        limiter_.configure(pair_.higher);
    }

    void watch() {
        for (std::uint64_t i = 0; i < operations; ++i) {
            const Decision decision = limiter_.peek("key", 3);
            note(decision);
            expect_of(decision.allowed || decision.remaining < 3);
            const Algorithm algorithm = limiter_.algorithm();
            expect_of(algorithm == pair_.lower || algorithm == pair_.higher);
        }
    }

    void is_done() { ++done_; }

    [[nodiscard]] Books& books() { return books_; }

private:
    std::uint64_t note_taken(const Decision& decision, std::uint64_t cost) {
        note(decision);
        books_.took(decision.allowed ? cost : 0);
        return decision.allowed ? cost : 0;
    }

    void note(const Decision& decision) {
        expect_of((decision.limit == low || decision.limit == high) && decision.remaining <= decision.limit);
    }

    // doctest's macros take a lock, which would keep the threads apart.
    void expect_of(bool true_of_any_decision) {
        if (!true_of_any_decision) {
            books_.odd();
        }
    }

    Pair<Algorithm> pair_;
    Limiter& limiter_;
    Books books_;
    std::atomic<unsigned> done_{0};
};

TEST_CASE_TEMPLATE("what is used is what was taken less what was given back, whatever else goes on",
                   Storage,
                   PENSTOCK_STORAGES_UNDER_TEST) {
    for_each_algorithm([](const auto& pair) {
        Limiter limiter{pair.higher, Storage::fresh(), ManualClock{}};
        Actors actors(pair, limiter);
        threads::together(6, [&](std::size_t thread) {
            switch (thread) {
            case 0:
                actors.configure(5);
                break;
            case 1:
                actors.charge();
                break;
            case 2:
                actors.check_in_batches();
                break;
            case 3:
                actors.watch();
                break;
            default:
                actors.check_and_refund(thread);
            }
            actors.is_done();
        });
        CHECK(actors.books().oddities() == 0);
        CHECK(actors.books().used() <= high + charges);
        CHECK(limiter.charge("key", 1).limit == high);
        (void)limiter.refund("key", charges + 1);  // so that the use is below the limit again and can be read
        CHECK(limiter.peek("key", 0).remaining == high - (actors.books().used() - charges));
    });
}

TEST_CASE_TEMPLATE("new parameters are seen whole, the old or the new", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    const AllOf one{TokenBucket{.capacity = 1, .refill = penstock::per(1, 1s)}, FixedWindow{.limit = 1, .window = 1s}};
    const AllOf two{TokenBucket{.capacity = 2, .refill = penstock::per(2, 3s)}, FixedWindow{.limit = 2, .window = 2s}};
    Limiter limiter{one, Storage::fresh(), ManualClock{}};
    const auto torn = threads::results_of(3, [&](std::size_t thread) {
        std::uint64_t mine = 0;
        for (std::uint64_t i = 0; i < 1'000'000; ++i) {
            if (thread == 0) {
                limiter.configure(i % 2 == 0 ? two : one);
            } else {
                const auto seen = limiter.algorithm();
                mine += seen == one || seen == two ? 0 : 1;
            }
        }
        return mine;
    });
    CHECK(torn == std::vector<std::uint64_t>(3, 0));
}

/// Threads that check, give back what they took, and forget the key now and then.
template <class AnyLimiter>
void check_refund_and_reset(AnyLimiter& limiter, Books& books, std::atomic<std::uint64_t>& resets, std::size_t thread) {
    support::Random random(thread);
    std::uint64_t mine = 0;
    for (std::uint64_t i = 0; i < operations; ++i) {
        const bool admitted = limiter.check("key").allowed;
        books.took(admitted ? 1 : 0);
        mine += admitted ? 1 : 0;
        if (mine > 0 && random.below(4) == 0) {
            (void)limiter.refund("key", mine);
            books.gave_back(mine);
            mine = 0;
        }
        if (random.below(50) == 0) {
            ++resets;
            limiter.reset("key");
        }
    }
}

TEST_CASE_TEMPLATE("a reset gives one limit anew and no more, whatever else goes on",
                   Storage,
                   PENSTOCK_STORAGES_UNDER_TEST) {
    const auto test = [](const auto& algorithm) {
        Limiter limiter{algorithm, Storage::fresh(), ManualClock{}};
        Books books;
        std::atomic<std::uint64_t> resets{0};
        threads::together(4, [&](std::size_t thread) { check_refund_and_reset(limiter, books, resets, thread); });
        CHECK(books.used() <= limit * (resets + 1));
        limiter.reset("key");
        CHECK(expect::allowed_of(2 * limit, limiter, "key") == limit);
    };
    test(TokenBucket{.capacity = limit, .refill = per_hour(1)});
    test(SlidingWindow{.limit = limit, .window = 1h});
    test(FixedWindow{.limit = limit, .window = 1h});
    test(AllOf{TokenBucket{.capacity = limit, .refill = per_hour(1)}, FixedWindow{.limit = limit, .window = 1h}});
}

}  // namespace
