// SPDX-License-Identifier: MIT
// Many checks in flight: how many a second, and what they cost this process.
#ifndef PENSTOCK_BENCH_REDIS_PIPELINED_HPP
#define PENSTOCK_BENCH_REDIS_PIPELINED_HPP

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "../core/ours.hpp"
#include "../report.hpp"
#include "bare.hpp"
#include "clients.hpp"
#include "options.hpp"
#include "rig.hpp"
#include "turns.hpp"
#include "wire.hpp"

namespace bench {

/// Keeps count of checks whose answers come later, on another thread. Who asks too much sleeps until a quarter of the
/// places is free: to wake for each single one would be to measure that.
class Flight {
public:
    static constexpr std::size_t places = 256;

    /// Before a check.
    void start() {
        if (started_ == free_until_) {
            free_until_ = wait_for_landings(started_ - places + places / 4) + places;
        }
        ++started_;
    }

    /// On the thread that brings the answers.
    void land(const Answer& answer) noexcept {
        tally_.add(answer);
        if (landed_.fetch_add(1) + 1 == awaited_.load()) {
            const std::lock_guard lock{mutex_};
            changed_.notify_one();
        }
    }

    /// All have landed.
    [[nodiscard]] Tally end() {
        wait_for_landings(started_);
        return tally_;
    }

private:
    /// Until so many have landed. Returns how many have.
    std::size_t wait_for_landings(std::size_t count) {
        awaited_ = count;
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return landed_ >= count; });
        return landed_;
    }

    std::size_t started_ = 0;
    std::size_t free_until_ = places;
    std::atomic<std::size_t> awaited_{0};
    alignas(64) std::atomic<std::size_t> landed_{0};
    Tally tally_;
    std::mutex mutex_;
    std::condition_variable changed_;
};

[[nodiscard]] inline Figures fly(Rig& rig, std::size_t checks) {
    const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
    const std::vector<Name> names = names_of(clients);
    Flight flight;
    Meter meter{rig.server};
    for (const Name& name : names) {
        flight.start();
        rig.limiter.async_check(
            name.view(), 1, [&flight](const penstock::Decision& decision) { flight.land(answer_of(decision)); });
    }
    const Tally tally = flight.end();
    const Figures figures = meter.per_check(checks);
    rig.ledger.demand("the library, 256 in flight", clients, tally);
    return figures;
}

/// What redis-benchmark -P 64 does, which cannot send arguments of any bytes; but the next commands go out as soon as
/// some answers are in, not when all are.
[[nodiscard]] inline Figures run_wire(Rig& rig, Wire& wire, std::size_t checks) {
    const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
    const Batch batch{*rig.script, clients};
    Meter meter{rig.server};
    const Tally tally = answers_of(wire, *rig.script, batch);
    const Figures figures = meter.per_check(checks);
    rig.ledger.demand("a bare wire", clients, tally);
    return figures;
}

[[nodiscard]] inline Figures run_hiredis(Rig& rig, Bare& bare, std::size_t checks) {
    const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
    const Batch batch{*rig.script, clients};
    const std::vector<Arguments> arguments = arguments_of(batch);
    Meter meter{rig.server};
    Tally tally;
    std::size_t sent = 0;
    for (std::size_t received = 0; received < checks; ++received) {
        for (; sent < (std::min)(received + Flight::places, checks); ++sent) {
            bare.add(arguments[sent]);
        }
        tally.add(bare.next());
    }
    const Figures figures = meter.per_check(checks);
    rig.ledger.demand("hiredis, pipelined", clients, tally);
    return figures;
}

inline void measure_pipelined(Report& report, const RedisOptions& options) {
    Rig rig{options.clients};
    Wire wire{rig.server.port()};
    Bare bare{rig.server.port(), *rig.script};
    const auto figures = take_turns("in flight",
                                    {{"ours", [&] { return fly(rig, options.block); }},
                                     {"a bare wire", [&] { return run_wire(rig, wire, options.block); }},
                                     {"hiredis", [&] { return run_hiredis(rig, bare, options.block); }}},
                                    options.turns);
    report.add({"async, 256 in flight / a bare wire, 64 in flight",
                1e6 / figures[0].real,
                1e6 / figures[1].real,
                Unit::thousands_per_second,
                at_least(0.9)});
    report.add({"client CPU, async, 256 in flight / pipelined hiredis",
                figures[0].client,
                figures[2].client,
                Unit::nanoseconds,
                at_most(1.5)});
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_PIPELINED_HPP
