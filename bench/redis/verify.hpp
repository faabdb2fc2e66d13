// SPDX-License-Identifier: MIT
// Before anything is timed: the library, its scripts over a bare wire and the textbook decide alike.
#ifndef PENSTOCK_BENCH_REDIS_VERIFY_HPP
#define PENSTOCK_BENCH_REDIS_VERIFY_HPP

#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/ours.hpp"
#include "../report.hpp"
#include "clients.hpp"
#include "rig.hpp"
#include "script.hpp"
#include "server.hpp"
#include "textbook.hpp"
#include "wire.hpp"

namespace bench {

/// Few clients, most of whom use all they have; the waits are left out, since they tell when a check came.
inline constexpr std::size_t traced_clients = 1000;
inline constexpr Limit traced_limit{.capacity = 7, .micros_per_unit = 3'600'000'000};

struct Verdict {
    bool allowed;
    std::uint64_t remaining;

    explicit Verdict(const Answer& answer) : allowed{answer.allowed}, remaining{answer.remaining} {}
    friend bool operator==(const Verdict&, const Verdict&) = default;
};

using Trace = std::vector<std::uint32_t>;

[[nodiscard]] inline std::vector<Verdict> replay(RedisLimiter& limiter, const Trace& trace) {
    warm_up(limiter);
    std::vector<Verdict> verdicts;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        verdicts.emplace_back(answer_of(limiter.check(name_of(trace[i]).view(), 1 + i % 2)));
    }
    return verdicts;
}

[[nodiscard]] inline std::vector<Verdict> replay(Server& server, const Script& script, const Trace& trace) {
    server.load(script);
    Wire wire{server.port()};
    std::vector<Verdict> verdicts;
    for (std::size_t i = 0; i < trace.size(); ++i) {
        const Batch one{script, std::span{trace}.subspan(i, 1), 1 + i % 2};
        wire.run(one, 1, [&](std::span<const std::int64_t> reply) { verdicts.emplace_back(script.answer(reply)); });
    }
    return verdicts;
}

inline void demand_equal(const std::string& who, const std::vector<Verdict>& theirs, const std::vector<Verdict>& ours) {
    if (theirs == ours) return;
    const auto differ = std::mismatch(theirs.begin(), theirs.end(), ours.begin(), ours.end());
    throw WrongAnswer{who + " and penstock differ at step " + std::to_string(differ.first - theirs.begin())};
}

inline void verify_layout(Server& server,
                          penstock::Layout layout,
                          const Trace& trace,
                          const std::vector<Verdict>& all) {
    const penstock::TokenBucket algorithm = bucket_of(traced_limit);
    RedisLimiter limiter{algorithm, storage_on(server, traced_clients, layout)};
    demand_equal("the storage", replay(limiter, trace), all);
    const OurScript<penstock::TokenBucket> script{algorithm, layout, meta_for(traced_clients), "raw"};
    demand_equal("the bare script", replay(server, script, trace), all);
}

inline void verify_all() {
    Report::progress("verifying that all give the same answers");
    const Trace trace = Crowd{traced_clients, 7}.draw(6000);
    std::vector<Verdict> ours;
    penstock::Limiter local{bucket_of(traced_limit)};
    for (std::size_t i = 0; i < trace.size(); ++i) {
        ours.emplace_back(answer_of(local.check(name_of(trace[i]).view(), 1 + i % 2)));
    }
    const auto allowed = std::count_if(ours.begin(), ours.end(), [](const Verdict& its) { return its.allowed; });
    if (allowed < 2000 || allowed > 5000) throw WrongAnswer{"the trace does not mix allowed and rejected"};

    Server server;
    verify_layout(server, penstock::Layout::packed, trace, ours);
    verify_layout(server, penstock::Layout::per_key, trace, ours);
    demand_equal("the textbook", replay(server, Textbook{traced_limit}, trace), ours);
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_VERIFY_HPP
