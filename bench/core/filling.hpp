// SPDX-License-Identifier: MIT
// From empty to full, each contender in a process of its own: memory for each key, and the worst single check.
#ifndef PENSTOCK_BENCH_CORE_FILLING_HPP
#define PENSTOCK_BENCH_CORE_FILLING_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../alone.hpp"
#include "../peers/peer.hpp"
#include "../report.hpp"
#include "options.hpp"
#include "walk.hpp"

namespace bench {

struct Filling {
    double bytes;  // for each live key
    double p9999;  // nanoseconds a check
    double worst;
};

[[nodiscard]] inline double quantile(std::vector<std::uint32_t>& nanos, std::size_t beyond) {
    const auto at = nanos.end() - 1 - static_cast<std::ptrdiff_t>(beyond);
    std::nth_element(nanos.begin(), at, nanos.end());
    return *at;
}

[[nodiscard]] inline Filling fill_once(const Peer& peer, std::size_t told, std::size_t clients) {
    std::vector<std::uint32_t> nanos(clients, 1);
    const double before = resident_bytes();
    Instance instance{peer, {.limit = slow_limit, .keys = told}};
    instance.fill(nanos);
    const double grown = resident_bytes() - before;
    const bool all_allowed = std::find(nanos.begin(), nanos.end(), 0U) == nanos.end();
    const std::size_t live = instance.live(clients);
    // Losing a few in a million to full sets is within the contract; more is not.
    if (!all_allowed || live + clients / 100'000 < clients) throw WrongAnswer{"keys were lost"};
    return {grown / static_cast<double>(live), quantile(nanos, clients / 10'000), quantile(nanos, 0)};
}

[[nodiscard]] inline Filling fill_alone(const Peer& peer, std::size_t told, const CoreOptions& options) {
    Report::progress("filling " + std::string{peer.name});
    return alone([&] { return fill_once(peer, told, options.clients); });
}

struct Named {
    std::string name;
    Filling filling;
};

using Figure = double Filling::*;

inline void against_each(Report& report,
                         const std::string& what,
                         Figure figure,
                         Unit unit,
                         const Filling& ours,
                         const std::vector<Named>& peers) {
    for (const Named& peer : peers) {
        report.add({what + " / " + peer.name, ours.*figure, peer.filling.*figure, unit});
    }
}

inline void against_best(Report& report,
                         const std::string& what,
                         Figure figure,
                         Unit unit,
                         const Filling& ours,
                         const std::vector<Named>& peers,
                         Goal goal = {}) {
    const auto less = [figure](const Named& a, const Named& b) { return a.filling.*figure < b.filling.*figure; };
    const Named& best = *std::min_element(peers.begin(), peers.end(), less);
    report.add({what + " / best (" + best.name + ")", ours.*figure, best.filling.*figure, unit, goal});
}

inline void measure_filling(Report& report, const CoreOptions& options) {
    std::vector<Named> growing;
    std::vector<Named> reserved;
    for (const Peer* peer : all_peers) {
        const std::string name{peer->name};
        growing.push_back({name, fill_alone(*peer, 0, options)});
        reserved.push_back({name, fill_alone(*peer, options.clients, options)});
    }
    const Filling ours = fill_alone(penstock_peer, options.clients, options);

    constexpr Unit bytes = Unit::bytes;
    constexpr Unit time = Unit::nanoseconds;
    report.add({"bytes for a live key / 48", ours.bytes, 48, bytes, at_most(1)});
    against_each(report, "bytes for a live key", &Filling::bytes, bytes, ours, growing);
    against_best(report, "bytes for a live key", &Filling::bytes, bytes, ours, growing, at_most(0.5));
    against_each(report, "worst check while filling", &Filling::worst, time, ours, growing);
    against_best(report, "worst check while filling", &Filling::worst, time, ours, growing, at_most(0.2));
    against_best(report, "p99.99 while filling", &Filling::p9999, time, ours, growing);
    // A team that knows the number of clients beforehand can avoid growing: the same against those.
    against_best(report, "bytes, size known", &Filling::bytes, bytes, ours, reserved);
    against_best(report, "worst check, size known", &Filling::worst, time, ours, reserved);
    against_best(report, "p99.99, size known", &Filling::p9999, time, ours, reserved);
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_FILLING_HPP
