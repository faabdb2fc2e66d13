// SPDX-License-Identifier: MIT
// Callers who wait for each answer: one alone, and 64 at once, against hiredis, which they would use instead.
#ifndef PENSTOCK_BENCH_REDIS_BLOCKING_HPP
#define PENSTOCK_BENCH_REDIS_BLOCKING_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../core/ours.hpp"
#include "../harness.hpp"
#include "../report.hpp"
#include "bare.hpp"
#include "clients.hpp"
#include "options.hpp"
#include "rig.hpp"
#include "turns.hpp"
#include "wire.hpp"

namespace bench {

/// `check(i)` for each client; the latency is the median.
template <class Check>
[[nodiscard]] Figures time_each(const char* who, Rig& rig, std::span<const std::uint32_t> clients, const Check& check) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> nanos;
    nanos.reserve(clients.size());
    Tally tally;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        const Clock::time_point start = Clock::now();
        tally.add(check(i));
        nanos.push_back(std::chrono::duration<double, std::nano>{Clock::now() - start}.count());
    }
    rig.ledger.demand(who, clients, tally);
    return {.latency = median(nanos)};
}

inline void measure_one_caller(Report& report, const RedisOptions& options, Rig& rig) {
    constexpr std::size_t checks = 500;
    Bare bare{rig.server.port(), *rig.script};
    const auto ours = [&] {
        const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
        const std::vector<Name> names = names_of(clients);
        return time_each("the library, one caller", rig, clients, [&](std::size_t i) {
            return answer_of(rig.limiter.check(names[i].view()));
        });
    };
    const auto theirs = [&] {
        const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
        const Batch batch{*rig.script, clients};
        const std::vector<Arguments> arguments = arguments_of(batch);
        return time_each("hiredis, one caller", rig, clients, [&](std::size_t i) { return bare.check(arguments[i]); });
    };
    const auto figures = take_turns("one caller", {{"ours", ours}, {"hiredis", theirs}}, options.short_turns);
    report.add({"blocking check, 1 caller, p50 / bare hiredis",
                figures[0].latency,
                figures[1].latency,
                Unit::nanoseconds,
                at_most(1.3)});
}

inline constexpr std::size_t callers = 64;

/// Each of 64 threads makes its share of the checks, `check(thread, i)`. The threads are there before the time starts.
template <class Check>
[[nodiscard]] Figures race(const char* who, Rig& rig, std::span<const std::uint32_t> clients, const Check& check) {
    const std::size_t share = clients.size() / callers;
    std::vector<Tally> tallies(callers);
    std::latch ready{callers};
    std::latch go{1};
    const auto work = [&](std::size_t thread) {
        ready.count_down();
        go.wait();
        Tally tally;
        try {
            for (std::size_t i = thread * share; i < (thread + 1) * share; ++i) {
                tally.add(check(thread, i));
            }
        } catch (const WrongAnswer&) {
            tally = {};  // the ledger will not forgive that
        }
        tallies[thread] = tally;
    };
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < callers; ++thread) {
        threads.emplace_back(work, thread);
    }
    ready.wait();
    Meter meter{rig.server};
    go.count_down();
    threads.clear();
    const Figures figures = meter.per_check(clients.size());
    Tally sum;
    for (const Tally& tally : tallies) {
        sum.allowed += tally.allowed;
        sum.remaining += tally.remaining;
    }
    rig.ledger.demand(who, clients, sum);
    return figures;
}

inline void measure_many_callers(Report& report, const RedisOptions& options, Rig& rig) {
    const std::size_t checks = callers * options.each_of_64;
    std::vector<std::unique_ptr<Bare>> bares;
    for (std::size_t i = 0; i < callers; ++i) {
        bares.push_back(std::make_unique<Bare>(rig.server.port(), *rig.script));
    }
    const auto ours = [&] {
        const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
        const std::vector<Name> names = names_of(clients);
        return race("the library, 64 callers", rig, clients, [&](std::size_t, std::size_t i) {
            return answer_of(rig.limiter.check(names[i].view()));
        });
    };
    const auto theirs = [&] {
        const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
        const Batch batch{*rig.script, clients};
        const std::vector<Arguments> arguments = arguments_of(batch);
        return race("hiredis, 64 callers", rig, clients, [&](std::size_t thread, std::size_t i) {
            return bares[thread]->check(arguments[i]);
        });
    };
    const auto figures = take_turns("64 callers", {{"ours", ours}, {"hiredis", theirs}}, options.turns);
    report.add({"64 blocking callers / 64 hiredis connections",
                1e6 / figures[0].real,
                1e6 / figures[1].real,
                Unit::thousands_per_second,
                at_least(2)});
}

inline void measure_blocking(Report& report, const RedisOptions& options) {
    Rig rig{options.clients};
    measure_one_caller(report, options, rig);
    measure_many_callers(report, options, rig);
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_BLOCKING_HPP
