// SPDX-License-Identifier: MIT
// Many threads on many keys: each key gets one place and admits exactly its limit.
#include "../support/expect.hpp"
#include "../support/random.hpp"
#include "../support/storages.hpp"
#include "../support/threads.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::per_hour;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using Counts = std::vector<std::uint64_t>;

std::vector<std::string> names(std::size_t count) {
    std::vector<std::string> keys(count);
    for (std::size_t i = 0; i < count; ++i) {
        keys[i] = "client " + std::to_string(i);
    }
    return keys;
}

/// Of every key, how often it was allowed in all threads.
Counts sums(const std::vector<Counts>& results) {
    Counts all(results.front().size());
    for (const Counts& result : results) {
        std::transform(all.begin(), all.end(), result.begin(), all.begin(), std::plus<>{});
    }
    return all;
}

constexpr std::size_t clients = 3000;
constexpr std::uint64_t limit = 5;
constexpr std::size_t at_once = 4;
constexpr std::size_t checks_of_each = 3 * clients;  // 12 of each client in all

/// The client of a thread's check: the threads take them in orders of their own.
std::size_t client_of(std::size_t thread, std::size_t check) {
    constexpr std::array<std::size_t, at_once> strides{1, 7, 11, 2999};
    return check * strides[thread] % clients;
}

template <class Storage, class Algorithm>
void check_that_each_admits_its_limit(const Algorithm& algorithm) {
    const std::vector<std::string> keys = names(clients);
    Limiter limiter{algorithm, Storage::fresh(), ManualClock{}};
    const auto counts = threads::results_of(at_once, [&](std::size_t thread) {
        Counts mine(clients);
        for (std::size_t check = 0; check < checks_of_each; ++check) {
            const std::size_t client = client_of(thread, check);
            mine[client] += limiter.check(keys[client]).allowed ? 1 : 0;
        }
        return mine;
    });
    CHECK(sums(counts) == Counts(clients, limit));
}

TEST_CASE_TEMPLATE("many keys admit exactly the sum of their limits", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    check_that_each_admits_its_limit<Storage>(TokenBucket{.capacity = limit, .refill = per_hour(1)});
    check_that_each_admits_its_limit<Storage>(SlidingWindow{.limit = limit, .window = 1h});
    check_that_each_admits_its_limit<Storage>(FixedWindow{.limit = limit, .window = 1h});
    check_that_each_admits_its_limit<Storage>(
        AllOf{TokenBucket{.capacity = limit, .refill = per_hour(1)}, FixedWindow{.limit = limit, .window = 1h}});
}

/// One thread's checks, in batches.
template <class AnyLimiter>
Counts allowed_in_batches(AnyLimiter& limiter, const std::vector<std::string>& keys, std::size_t thread) {
    std::vector<Check> checks(checks_of_each);
    for (std::size_t check = 0; check < checks.size(); ++check) {
        checks[check].key = keys[client_of(thread, check)];
    }
    std::vector<Decision> decisions(checks.size());
    for (std::size_t begin = 0; begin < checks.size(); begin += 100) {
        limiter.check(std::span(checks).subspan(begin, 100), std::span(decisions).subspan(begin, 100));
    }
    Counts mine(clients);
    for (std::size_t check = 0; check < checks.size(); ++check) {
        mine[client_of(thread, check)] += decisions[check].allowed ? 1 : 0;
    }
    return mine;
}

TEST_CASE_TEMPLATE("batches of many keys admit exactly the sum of their limits",
                   Storage,
                   PENSTOCK_STORAGES_UNDER_TEST) {
    const std::vector<std::string> keys = names(clients);
    Limiter limiter{TokenBucket{.capacity = limit, .refill = per_hour(1)}, Storage::fresh(), ManualClock{}};
    const auto counts =
        threads::results_of(at_once, [&](std::size_t thread) { return allowed_in_batches(limiter, keys, thread); });
    CHECK(sums(counts) == Counts(clients, limit));
}

using Unit = Limiter<TokenBucket, LocalStorage, ManualClock>;

constexpr TokenBucket one_per_hour{.capacity = 1, .refill = per_hour(1)};

/// The smallest table: every key may stand in every slot, so that those of one round never push each other out.
const LocalStorage smallest{{.max_keys = 1, .seed = 1}};

TEST_CASE("threads that bring the same new key into a full table give it one place") {
    constexpr std::size_t rounds = 1000;
    constexpr std::size_t keys_of_round = 3;
    const std::vector<std::string> keys = names(rounds * keys_of_round);
    const ManualClock clock;
    Unit limiter{one_per_hour, smallest, clock};
    threads::Barrier barrier(at_once);
    const auto counts = threads::results_of(at_once, [&](std::size_t thread) {
        Counts mine(keys.size());
        for (std::size_t round = 0; round < rounds; ++round) {
            barrier.arrive_and_wait();
            clock.set(std::chrono::seconds(round));  // keys of this round are fresh later than all before
            for (std::size_t i = 0; i < 2 * keys_of_round; ++i) {
                const std::size_t key = round * keys_of_round + (i + thread) % keys_of_round;
                mine[key] += limiter.check(keys[key]).allowed ? 1 : 0;
            }
        }
        return mine;
    });
    CHECK(sums(counts) == Counts(keys.size(), 1));
    CHECK(limiter.storage().evictions() == keys.size() - limiter.storage().slots());
}

TEST_CASE("threads that bring the same new keys in the same order give each one place") {
    const std::vector<std::string> keys = names(100'000);
    Unit limiter{one_per_hour, LocalStorage{{.max_keys = 200'000, .seed = 1}}, ManualClock{}};
    const auto counts = threads::results_of(at_once, [&](std::size_t) {
        Counts mine(keys.size());
        for (std::size_t key = 0; key < keys.size(); ++key) {
            mine[key] = expect::allowed_of(1, limiter, keys[key]);
        }
        return mine;
    });
    CHECK(sums(counts) == Counts(keys.size(), 1));
}

/// Takes the place of others' keys and gives it away again. Fresh so soon that no other key makes room before.
void come_and_go(Unit& limiter, std::size_t thread) {
    const std::vector<std::string> keys = names(32);
    const auto plan = penstock::plan(TokenBucket{.capacity = 1, .refill = penstock::per_second(1)});
    support::Random random(thread);
    for (int i = 0; i < 100'000; ++i) {
        (void)limiter.check(keys[random.below(keys.size())], plan);
        limiter.reset(keys[random.below(keys.size())]);
    }
}

TEST_CASE("neither a reset nor a new key takes away the place of a key that is limited") {
    Unit limiter{one_per_hour, smallest, ManualClock{}};
    const auto twice = threads::results_of(at_once, [&](std::size_t thread) {
        std::uint64_t mine = 0;
        if (thread > 0) {
            come_and_go(limiter, thread);
            return mine;
        }
        for (int i = 0; i < 100'000; ++i) {
            const std::string key = "limited " + std::to_string(i);
            mine += expect::allowed_of(2, limiter, key) - 1;
            limiter.reset(key);
        }
        return mine;
    });
    CHECK(twice == std::vector<std::uint64_t>(at_once, 0));
}

TEST_CASE("whoever is admitted twice was evicted in between") {
    const std::vector<std::string> keys = names(100);
    Unit limiter{one_per_hour, smallest, ManualClock{}};
    const auto admitted = threads::results_of(at_once, [&](std::size_t thread) {
        support::Random random(thread);
        std::uint64_t mine = 0;
        for (int i = 0; i < 50'000; ++i) {
            mine += expect::allowed_of(1, limiter, keys[random.below(keys.size())]);
        }
        return mine;
    });
    // The clock stands and nobody is given a unit back: each place was taken by one admission.
    CHECK(std::accumulate(admitted.begin(), admitted.end(), std::uint64_t{0}) ==
          limiter.storage().evictions() + limiter.storage().slots());
}

}  // namespace
