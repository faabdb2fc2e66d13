// SPDX-License-Identifier: MIT
// The measured loops, instantiated once in each contender's translation unit: the same code around each of them.
#ifndef PENSTOCK_BENCH_PEERS_LOOPS_HPP
#define PENSTOCK_BENCH_PEERS_LOOPS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <time.h>

#include "../keys.hpp"
#include "peer.hpp"

namespace bench {

template <class Contender>
[[nodiscard]] Tally run_all(Contender& contender, std::span<const Key> keys) {
    Tally tally;
    for (const Key& key : keys) {
        tally.add(contender.check(key.view()));
    }
    return tally;
}

[[nodiscard]] inline std::int64_t processor_nanos() noexcept {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// A slow check counts as at most the processor time since its block of checks began (to read that before each check
/// would be too slow): what other processes take meanwhile is not the contender's.
template <class Contender>
void fill_timed(Contender& contender, std::span<std::uint32_t> nanos) {
    using namespace std::chrono;
    constexpr std::size_t block = 32;
    constexpr std::int64_t slow = 5'000;
    std::int64_t block_start = 0;
    for (std::size_t client = 0; client < nanos.size(); ++client) {
        if (client % block == 0) block_start = processor_nanos();
        const Key key = key_of(client);
        const auto start = steady_clock::now();
        const Answer answer = contender.check(key.view());
        std::int64_t took = duration_cast<nanoseconds>(steady_clock::now() - start).count();
        if (took > slow) took = (std::min)(took, processor_nanos() - block_start);
        nanos[client] = answer.allowed ? static_cast<std::uint32_t>(took) : 0;
    }
}

template <class Contender>
[[nodiscard]] std::vector<Answer> replay_all(Contender& contender, std::span<const Step> steps) {
    std::vector<Answer> answers;
    answers.reserve(steps.size());
    for (const Step& step : steps) {
        answers.push_back(contender.check_at(step.key.view(), step.cost, step.now));
    }
    return answers;
}

/// Contender: check(key) on its own clock, live(clients). Replayed: check_at(key, cost, now).
template <class Contender, class Replayed = Contender>
[[nodiscard]] constexpr Peer make_peer(std::string_view name) {
    return {
        .name = name,
        .create = [](const Setup& setup) -> void* { return new Contender{setup}; },
        .destroy = [](void* self) { delete static_cast<Contender*>(self); },
        .run = [](void* self, std::span<const Key> keys) { return run_all(*static_cast<Contender*>(self), keys); },
        .fill = [](void* self, std::span<std::uint32_t> nanos) { fill_timed(*static_cast<Contender*>(self), nanos); },
        .live = [](void* self, std::size_t clients) { return static_cast<Contender*>(self)->live(clients); },
        .replay =
            [](const Setup& setup, std::span<const Step> steps) {
                Replayed contender{setup};
                return replay_all(contender, steps);
            }};
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_PEERS_LOOPS_HPP
