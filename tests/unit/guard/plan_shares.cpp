// SPDX-License-Identifier: MIT
// The plans of shares: the same as if each were made anew.
#include <penstock/guard/plan_shares.hpp>

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::FixedWindow;
using penstock::plan;
using penstock::detail::share_of_plan;

FixedWindow of(std::uint64_t limit) {
    return {.limit = limit, .window = 1h};
}

TEST_CASE("a share is that of its plan, number and division, whatever was asked for before") {
    for (int round = 0; round < 3; ++round) {
        for (std::uint64_t limit = 100; limit < 120; ++limit) {  // many of them meet in one place
            for (std::uint64_t i = 0; i < 3; ++i) {
                CHECK(share_of_plan(plan(of(limit)), i, 3).algorithm() == of(limit).share(i, 3));
                CHECK(share_of_plan(plan(of(limit)), i, 4).algorithm() == of(limit).share(i, 4));
            }
        }
    }
}

TEST_CASE("threads get their own shares") {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::uint64_t i = 0; i < 5000; ++i) {
                const FixedWindow whole = of(1000 * (thread + 1) + i % 5);
                wrong += share_of_plan(plan(whole), 1, 2).algorithm() == whole.share(1, 2) ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
}

}  // namespace
