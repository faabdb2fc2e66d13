// SPDX-License-Identifier: MIT
// What one reading of each clock costs.
#ifndef PENSTOCK_BENCH_CORE_CLOCKS_HPP
#define PENSTOCK_BENCH_CORE_CLOCKS_HPP

#include <penstock/penstock.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "../harness.hpp"
#include "options.hpp"

namespace bench {

template <class Read>
[[nodiscard]] Lane clock_lane(std::string name, Read read) {
    constexpr std::size_t readings = 1'000'000;
    const auto pass = [read](int) {
        for (std::size_t i = 0; i < readings; ++i) {
            benchmark::DoNotOptimize(read());
        }
    };
    return {.name = std::move(name), .checks = readings, .pass = pass};
}

inline void measure_clocks(Report& report, const CoreOptions& options) {
    const auto ours = [](auto clock) { return [clock] { return clock.now(); }; };
    const std::vector<Lane> lanes{
        clock_lane("std", [] { return std::chrono::steady_clock::now(); }),
        clock_lane("SteadyClock", ours(penstock::SteadyClock{})),
        clock_lane("CoarseClock", ours(penstock::CoarseClock{})),
        clock_lane("SystemClock", ours(penstock::SystemClock{})),
        clock_lane("CachedClock", ours(penstock::CachedClock{})),
        clock_lane("ManualClock", ours(penstock::ManualClock{})),
    };
    const auto nanos = take_turns("clocks", lanes, options.turns);
    for (std::size_t i = 1; i < lanes.size(); ++i) {
        report.add({lanes[i].name + "::now() / std::chrono::steady_clock",
                    nanos[i].processor,
                    nanos[0].processor,
                    Unit::nanoseconds});
    }
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_CLOCKS_HPP
