// SPDX-License-Identifier: MIT
// A breaker that threads share.
#include <penstock/guard/circuit.hpp>

#include "../../support/refusal.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::BreakerOptions;
using penstock::Circuit;
using penstock::Micros;
using penstock::Pass;
using penstock::detail::Health;
using support::text_of;

constexpr Micros second = 1'000'000;

void call(Circuit& circuit, Micros now, bool well, int times = 1) {
    for (int i = 0; i < times; ++i) {
        circuit.answered(circuit.ask(now), well ? Health::well : Health::unwell, now);
    }
}

template <class Work>
void in_threads(int count, Work work) {
    std::latch go{count};
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&] {
            go.arrive_and_wait();
            work();
        });
    }
}

TEST_CASE("it opens, probes and closes as its breaker does, and counts that") {
    Circuit circuit{{}};
    CHECK(circuit.ask(0) == Pass::granted);
    call(circuit, 0, false, 5);
    CHECK(circuit.stats().open);
    CHECK(circuit.ask(1 * second) == Pass::refused);
    CHECK(circuit.ask(2 * second) == Pass::refused);
    call(circuit, 5 * second, false);
    CHECK(circuit.stats().open);
    CHECK(circuit.ask(6 * second) == Pass::refused);
    call(circuit, 10 * second, true);
    const penstock::CircuitStats stats = circuit.stats();
    CHECK_FALSE(stats.open);
    CHECK(stats.openings == 1);
    CHECK(stats.probes == 2);
    CHECK(stats.refused == 3);
    CHECK(circuit.ask(10 * second) == Pass::granted);
}

TEST_CASE("calls that are well count against those that fail, in the tenth in which they were made") {
    Circuit circuit{{}};
    call(circuit, 0, true, 100);
    call(circuit, second - 1, false, 11);  // 11 of 111: not a tenth
    CHECK_FALSE(circuit.stats().open);
    call(circuit, second, false);  // the hundred are too long ago
    CHECK(circuit.stats().open);
}

TEST_CASE("of any number of threads that ask when a probe is due, one gets it") {
    for (int round = 0; round < 200; ++round) {
        Circuit circuit{{}};
        call(circuit, 0, false, 5);
        std::atomic<int> probes{0};
        std::atomic<int> granted{0};
        in_threads(4, [&] {
            for (int i = 0; i < 4; ++i) {
                const Pass pass = circuit.ask(5 * second);
                probes += pass == Pass::probe ? 1 : 0;
                granted += pass == Pass::granted ? 1 : 0;
            }
        });
        CHECK(probes == 1);
        CHECK(granted == 0);
        CHECK(circuit.stats().refused == 15);
    }
}

TEST_CASE("threads lose no failure, and a circuit opens once") {
    for (int round = 0; round < 200; ++round) {
        Circuit circuit{{.failures = 400}};
        in_threads(4, [&] {
            for (int i = 0; i < 100; ++i) {
                circuit.answered(Pass::granted, Health::unwell, 0);
            }
        });
        CHECK(circuit.stats().openings == 1);
    }
}

TEST_CASE("options out of range are refused") {
    CHECK(text_of([&] { (void)Circuit({.failures = 0}); }) == "Breaker.failures is 0: allowed is 1 to 1000000");
}

}  // namespace
