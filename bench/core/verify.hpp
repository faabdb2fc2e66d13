// SPDX-License-Identifier: MIT
// Before anything is timed: all contenders give the same answers to one recorded trace, field by field.
#ifndef PENSTOCK_BENCH_CORE_VERIFY_HPP
#define PENSTOCK_BENCH_CORE_VERIFY_HPP

#include <penstock/penstock.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../keys.hpp"
#include "../peers/loops.hpp"
#include "../peers/peer.hpp"
#include "../report.hpp"
#include "ours.hpp"

namespace bench {

inline constexpr Limit trace_limit{.capacity = 20, .micros_per_unit = 100'000};
inline constexpr std::size_t trace_clients = 1000;

/// Busy and idle clients, costs from 0 to beyond the capacity, pauses from none to several refills.
[[nodiscard]] inline std::vector<Step> record_trace(std::size_t steps) {
    Random random{7};
    std::int64_t now = 1'000'000;
    std::vector<Step> trace;
    trace.reserve(steps);
    for (const std::uint32_t client : zipfian(trace_clients, steps, 7)) {
        const bool usual = random.below(8) != 0;
        if (random.below(4) == 0) now += static_cast<std::int64_t>(random.below(4000));
        trace.push_back({key_of(client), usual ? 1 : random.below(trace_limit.capacity + 2), now});
    }
    return trace;
}

inline void demand_equal(std::string_view who, const std::vector<Answer>& theirs, const std::vector<Answer>& ours) {
    const auto [their, our] = std::mismatch(theirs.begin(), theirs.end(), ours.begin(), ours.end());
    if (their == theirs.end() && our == ours.end()) return;
    throw WrongAnswer{std::string{who} + " and penstock differ at step " + std::to_string(their - theirs.begin()) +
                      " of the trace"};
}

/// A batch has one time: that of its first step.
[[nodiscard]] inline std::vector<Step> at_batch_times(std::vector<Step> trace) {
    for (std::size_t i = 0; i < trace.size(); ++i) {
        trace[i].now = trace[i - i % batch_size].now;
    }
    return trace;
}

[[nodiscard]] inline std::vector<Answer> replay_in_batches(std::span<const Step> trace) {
    Ours<penstock::TokenBucket, penstock::ManualClock> ours{bucket_of(trace_limit), trace_clients};
    std::vector<Answer> answers;
    for (; !trace.empty(); trace = trace.subspan((std::min)(batch_size, trace.size()))) {
        std::vector<penstock::Check> checks;
        for (const Step& step : trace.first((std::min)(batch_size, trace.size()))) {
            checks.push_back({.key = step.key.view(), .cost = step.cost});
        }
        std::array<penstock::Decision, batch_size> decisions{};
        ours.set_time(trace.front().now);
        ours.check(checks, decisions);
        for (std::size_t i = 0; i < checks.size(); ++i) {
            answers.push_back(answer_of(decisions[i]));
        }
    }
    return answers;
}

inline void verify_all() {
    Report::progress("verifying that all give the same answers");
    const std::vector<Step> trace = record_trace(200'000);
    const Setup setup{.limit = trace_limit, .keys = trace_clients};
    const std::vector<Answer> ours = penstock_peer.replay(setup, trace);
    const auto allowed = std::count_if(ours.begin(), ours.end(), [](const Answer& answer) { return answer.allowed; });
    if (allowed < 50'000 || allowed > 150'000) throw WrongAnswer{"the trace does not mix allowed and rejected"};
    for (const Peer* peer : all_peers) {
        demand_equal(peer->name, peer->replay(setup, trace), ours);
    }

    Ours<TwoLimits, penstock::ManualClock> both{two_limits_of(trace_limit), trace_clients};
    demand_equal("AllOf of two", replay_all(both, trace), ours);
    demand_equal("a batch", replay_in_batches(trace), penstock_peer.replay(setup, at_batch_times(trace)));
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_VERIFY_HPP
