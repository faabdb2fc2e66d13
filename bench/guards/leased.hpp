// SPDX-License-Identifier: MIT
// Leases: how many checks they serve where the store would be asked for each, how fast, and how often it still is
// asked.
#ifndef PENSTOCK_BENCH_GUARDS_LEASED_HPP
#define PENSTOCK_BENCH_GUARDS_LEASED_HPP

#include <penstock/guard/leased.hpp>
#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "../core/hot.hpp"
#include "../redis/clients.hpp"
#include "../redis/pipelined.hpp"
#include "../redis/rig.hpp"
#include "../redis/turns.hpp"
#include "../report.hpp"
#include "options.hpp"

namespace bench {

using LeasedRedis = penstock::Leased<penstock::RedisStorage>;
using LeasedLimiter = penstock::Limiter<penstock::TokenBucket, LeasedRedis>;

[[nodiscard]] inline LeasedLimiter leased_on(const Server& server,
                                             const penstock::TokenBucket& bucket,
                                             std::uint64_t size) {
    return LeasedLimiter{bucket, LeasedRedis{storage_on(server, 50'000), {.size = size}}};
}

/// Two threads check one key as often as they can.
[[nodiscard]] inline Figures hammer(Server& server, LeasedLimiter& limiter, std::size_t checks) {
    Meter meter{server};
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 2; ++thread) {
            threads.emplace_back([&limiter, checks] {
                for (std::size_t i = 0; i < checks; ++i) {
                    static_cast<void>(limiter.check("hot"));
                }
            });
        }
    }
    return meter.per_check(2 * checks);
}

inline void measure_throughput(Report& report, const GuardsOptions& options, Rig& rig) {
    // As many a second as a busy service allows one tenant; and so many that none is ever rejected.
    LeasedLimiter limited = leased_on(rig.server, {.capacity = 100'000, .refill = penstock::per_second(100'000)}, 100);
    LeasedLimiter unlimited = leased_on(rig.server, bucket_of(generous_limit), 100);
    const auto figures = take_turns(
        "one hot key",
        std::vector<Side>{{"leased", [&] { return hammer(rig.server, limited, options.hot); }},
                          {"leased, never rejected", [&] { return hammer(rig.server, unlimited, options.hot / 10); }},
                          {"plain", [&] { return fly(rig, options.asked); }}},
        options.turns);
    const auto add = [&](const char* name, std::size_t ours, Goal goal) {
        report.add({name, 1e6 / figures[ours].real, 1e6 / figures[2].real, Unit::thousands_per_second, goal});
    };
    add("Leased{100}, hot key over its 100,000/s / plain, 256", 0, at_least(20));
    add("the same never rejected: 100 a round trip at most", 1, {});
}

/// The latency below which 99 of 100 are, of checks of one key at 10,000 a second.
[[nodiscard]] inline Figures pace(LeasedLimiter& limiter, std::size_t checks) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> nanos;
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 0; i < checks; ++i) {
        std::this_thread::sleep_until(begin + i * std::chrono::microseconds{100});
        const Clock::time_point start = Clock::now();
        static_cast<void>(limiter.check("hot"));
        nanos.push_back(std::chrono::duration<double, std::nano>{Clock::now() - start}.count());
    }
    const auto at = nanos.begin() + static_cast<std::ptrdiff_t>(nanos.size() * 99 / 100);
    std::nth_element(nanos.begin(), at, nanos.end());
    return {.latency = *at};
}

/// The median of checks that each ask the store.
[[nodiscard]] inline Figures round_trip(Rig& rig, std::size_t checks) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> nanos;
    for (const Name& name : names_of(rig.crowd.draw(checks))) {
        const Clock::time_point start = Clock::now();
        static_cast<void>(rig.limiter.peek(name.view()));
        nanos.push_back(std::chrono::duration<double, std::nano>{Clock::now() - start}.count());
    }
    return {.latency = median(nanos)};
}

inline void measure_latency(Report& report, const GuardsOptions& options, Rig& rig) {
    LeasedLimiter limiter = leased_on(rig.server, bucket_of(generous_limit), 100);
    const auto figures = take_turns("at 10,000/s",
                                    std::vector<Side>{{"leased", [&] { return pace(limiter, options.paced); }},
                                                      {"plain", [&] { return round_trip(rig, 500); }}},
                                    options.turns);
    report.add({"Leased{100}, p99 at 10,000/s / one round trip",
                figures[0].latency,
                figures[1].latency,
                Unit::nanoseconds,
                at_most(0.05)});
}

inline void measure_commands(Report& report, const GuardsOptions& options, Rig& rig) {
    const penstock::RedisStorage storage = storage_on(rig.server, options.clients);
    penstock::Limiter limiter{penstock::TokenBucket{.capacity = 1000, .refill = penstock::per_second(100)},
                              LeasedRedis{storage, {.size = 10}}};
    const std::uint64_t before = storage.stats().sent;
    for (std::size_t round = 0; round < options.rounds; ++round) {
        for (std::uint32_t client = 0; client < options.clients; ++client) {
            if (!limiter.check(name_of(client).view()).allowed) throw WrongAnswer{"a lease is refused to a client"};
        }
    }
    report.add({"store commands a check, Leased{10}, 10,000 clients",
                static_cast<double>(storage.stats().sent - before) / static_cast<double>(options.rounds),
                static_cast<double>(options.clients),
                Unit::commands,
                at_most(0.15)});
}

inline void measure_leased(Report& report, const GuardsOptions& options) {
    Rig rig{50'000};
    measure_throughput(report, options, rig);
    measure_latency(report, options, rig);
    measure_commands(report, options, rig);
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_GUARDS_LEASED_HPP
