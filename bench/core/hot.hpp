// SPDX-License-Identifier: MIT
// One hot key: everything is in the cache, so these lines show instructions and contention, not memory.
#ifndef PENSTOCK_BENCH_CORE_HOT_HPP
#define PENSTOCK_BENCH_CORE_HOT_HPP

#include <penstock/penstock.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../harness.hpp"
#include "../keys.hpp"
#include "../peers/loops.hpp"
#include "../peers/peer.hpp"
#include "options.hpp"
#include "ours.hpp"
#include "walk.hpp"

namespace bench {

/// Never exhausted within a run, though units come back all the time.
inline constexpr Limit generous_limit{.capacity = 1'000'000'000, .micros_per_unit = 1};

/// Exhausted by its first check.
inline constexpr Limit mean_limit{.capacity = 1, .micros_per_unit = 3'600'000'000};

/// The one key over and over. It is read from memory each time, so that no compiler hashes it once for all.
[[nodiscard]] inline Lane hot_lane(std::string name, RunKeys run, bool allowed, std::size_t threads = 1) {
    static const std::vector<Key> block(1000, key_of(42));
    constexpr std::size_t blocks = 500;
    const auto tallies = std::make_shared<std::array<std::uint64_t, most_threads>>();
    const auto pass = [tallies, run = std::move(run)](int thread) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < blocks; ++i) {
            sum += run(block).allowed;
        }
        (*tallies)[static_cast<std::size_t>(thread)] = sum;
    };
    const std::size_t checks = blocks * block.size();
    const auto verify = [tallies, name, allowed, threads, checks] {
        for (std::size_t i = 0; i < threads; ++i) {
            if ((*tallies)[i] != (allowed ? checks : 0)) throw WrongAnswer{name + ": wrongly allowed or rejected"};
        }
    };
    return {.name = name, .checks = checks, .pass = pass, .verify = verify, .threads = static_cast<int>(threads)};
}

template <class Contender>
[[nodiscard]] RunKeys run_of(Contender& contender) {
    return [&contender](std::span<const Key> keys) { return run_all(contender, keys); };
}

[[nodiscard]] inline RunKeys run_of(Instance& instance) {
    return [&instance](std::span<const Key> keys) { return instance.run(keys); };
}

inline void measure_hot(Report& report, const CoreOptions& options) {
    Instance floor{floor_peer, {.limit = generous_limit, .bytes = 64}};
    Ours<penstock::TokenBucket> single{bucket_of(generous_limit), 1000};
    Ours<TwoLimits> both{two_limits_of(generous_limit), 1000};
    Ours<penstock::TokenBucket> rejecting{bucket_of(mean_limit), 1000};
    rejecting.check(key_of(42).view());

    const auto alone = take_turns("hot key, 1 thread",
                                  {hot_lane("floor", run_of(floor), true),
                                   hot_lane("allowed", run_of(single), true),
                                   hot_lane("rejected", run_of(rejecting), false),
                                   hot_lane("AllOf", run_of(both), true)},
                                  options.turns);
    const auto add = [&report](const char* name, double ours, double reference, Goal goal) {
        report.add({name, ours, reference, Unit::nanoseconds, goal});
    };
    add("hot key, allowed, 1 thread / floor", alone[1].processor, alone[0].processor, at_most(1.4));
    add("hot key, rejected, 1 thread / floor", alone[2].processor, alone[0].processor, {});
    add("hot key, AllOf of two / one", alone[3].processor, alone[1].processor, at_most(1.5));

    const auto together = take_turns(
        "hot key, 2 threads",
        {hot_lane("one thread", run_of(rejecting), false), hot_lane("two threads", run_of(rejecting), false, 2)},
        options.turns);
    // On a machine with other work the real time says less than the processor time, which grows by contention alone.
    add("hot key, rejected, 2 threads, each / 1 thread", together[1].real, together[0].real, at_most(1.2));
    add("the same in processor time", together[1].processor, together[0].processor, {});
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_HOT_HPP
