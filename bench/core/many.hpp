// SPDX-License-Identifier: MIT
// Many keys: every check misses the cache, so these lines show how well the misses are hidden.
#ifndef PENSTOCK_BENCH_CORE_MANY_HPP
#define PENSTOCK_BENCH_CORE_MANY_HPP

#include <penstock/penstock.hpp>

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../harness.hpp"
#include "../keys.hpp"
#include "../peers/peer.hpp"
#include "hot.hpp"
#include "options.hpp"
#include "ours.hpp"
#include "walk.hpp"

namespace bench {

/// A contender that has seen every client once, with its ledger.
template <class Contender>
struct Crowd {
    Contender contender;
    WalkLedger ledger;

    template <class... Arguments>
    explicit Crowd(std::size_t clients, const Arguments&... arguments)
        : contender{arguments...}, ledger{clients, [this] { return contender.forgotten(); }} {
        admit_all(clients, run_of(contender));
    }

    [[nodiscard]] Lane lane(std::string_view name, const Walk& walk, std::size_t threads = 1) {
        return walk_lane(std::string{name}, run_of(contender), &ledger, walk, threads);
    }
};

using Single = Crowd<Ours<penstock::TokenBucket>>;

inline void against_floor(
    Report& report, const CoreOptions& options, Single& ours, Instance& floor, std::string order) {
    const bool uniform = order == "uniform";
    const Stream stream{uniform ? shuffled(options.clients, 1) : zipfian(options.clients, options.clients, 2)};
    const Walk walk{stream, options.pass, 1};
    const std::string name = options.many() + ", " + order + ", 1 thread / floor";
    const auto nanos =
        take_turns(name, {ours.lane("ours", walk), walk_lane("floor", run_of(floor), nullptr, walk)}, options.turns);
    report.add({name, nanos[0].processor, nanos[1].processor, Unit::nanoseconds, at_most(1.3)});
}

inline void against_itself(Report& report, const CoreOptions& options, Single& ours, const Stream& stream) {
    const Walk walk{stream, options.pass, 1};
    const RunKeys in_batches = [&ours](std::span<const Key> keys) { return run_batches(ours.contender, keys); };
    const auto batched =
        take_turns("batches",
                   {ours.lane("one", walk), walk_lane("batch", in_batches, &ours.ledger, walk.elsewhere())},
                   options.turns);
    const std::string many = options.many();
    report.add({many + ", batch of 32 / one by one",
                batched[1].processor,
                batched[0].processor,
                Unit::nanoseconds,
                at_most(0.6)});

    Crowd<Ours<TwoLimits>> both{options.clients, two_limits_of(slow_limit), options.clients};
    const auto two = take_turns("AllOf", {ours.lane("one", walk), both.lane("two", walk)}, options.turns);
    report.add({many + ", AllOf of two / one", two[1].processor, two[0].processor, Unit::nanoseconds, at_most(1.5)});
}

/// Millions of checks a second by all threads together, when each thread's check takes so many nanoseconds.
[[nodiscard]] constexpr double throughput(double nanos, int threads) {
    return threads * 1e3 / nanos;
}

inline void two_threads(
    Report& report, const CoreOptions& options, Single& ours, Instance& floor, const Stream& stream) {
    const Walk walk{stream, options.pass, most_threads};
    const RunKeys bare = run_of(floor);
    const auto nanos = take_turns("disjoint keys",
                                  {ours.lane("ours, 1 thread", walk),
                                   ours.lane("ours, 2 threads", walk.elsewhere(), 2),
                                   walk_lane("floor, 1 thread", bare, nullptr, walk),
                                   walk_lane("floor, 2 threads", bare, nullptr, walk.elsewhere(), 2)},
                                  options.turns);
    const auto add = [&](std::string name, double one, double two, Goal goal) {
        report.add({std::move(name), throughput(two, 2), throughput(one, 1), Unit::millions_per_second, goal});
    };
    add(options.many() + ", disjoint, 2 threads / 1 thread", nanos[0].real, nanos[1].real, at_least(1.8));
    add("the same in processor time", nanos[0].processor, nanos[1].processor, {});
    add("the same by the floor, in real time", nanos[2].real, nanos[3].real, {});
}

inline void against_peers(Report& report, const CoreOptions& options, Single& ours, const Stream& stream) {
    const Walk walk{stream, options.pass / 2, 1};
    std::deque<Crowd<Instance>> crowds;
    std::vector<Lane> lanes{ours.lane("ours", walk)};
    const std::string many = options.many() + " / ";
    for (const Peer* peer : all_peers) {
        crowds.emplace_back(options.clients, *peer, Setup{.limit = slow_limit, .keys = options.clients});
        lanes.push_back(crowds.back().lane(peer->name, walk));
    }
    const auto nanos = take_turns("peers", lanes, options.turns);
    const auto add = [&](const std::string& name, std::size_t lane, Goal goal) {
        report.add({many + name, nanos[0].processor, nanos[lane].processor, Unit::nanoseconds, goal});
    };
    std::size_t best = 1;
    for (std::size_t i = 1; i < lanes.size(); ++i) {
        add(lanes[i].name, i, {});
        best = nanos[i].processor < nanos[best].processor ? i : best;
    }
    add("best peer (" + lanes[best].name + ")", best, at_most(0.3));
}

inline void measure_many(Report& report, const CoreOptions& options) {
    Single ours{options.clients, bucket_of(slow_limit), options.clients};
    const Stream stream{shuffled(options.clients, 1)};
    {
        Instance floor{floor_peer, {.limit = slow_limit, .bytes = ours.contender.bytes()}};
        against_floor(report, options, ours, floor, "uniform");
        against_floor(report, options, ours, floor, "Zipf 1.0");
        two_threads(report, options, ours, floor, stream);
    }
    against_itself(report, options, ours, stream);
    against_peers(report, options, ours, stream);
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_MANY_HPP
