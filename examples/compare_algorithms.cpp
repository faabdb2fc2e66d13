// SPDX-License-Identifier: MIT
// The same traffic through every algorithm, drawn as a timeline in the terminal or, with --svg FILE, as a picture.
#include <penstock/penstock.hpp>

#include "compare_algorithms/drawing.hpp"
#include "picture.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Windows begin at whole seconds: the last phase lies around the edge of two.
const std::vector<drawing::Phase> phases{
    {.begin = 0, .end = 20, .requests = 2, .name = "steady, 20 per second"},
    {.begin = 33, .end = 37, .requests = 8, .name = "a burst of 32"},
    {.begin = 59, .end = 61, .requests = 8, .name = "16 at a window's edge"},
};

/// Sends all requests, each at its time by `clock`, and notes those for which `passes()` is true.
template <class Passes>
drawing::Track send(std::string name, const penstock::ManualClock& clock, Passes passes) {
    drawing::Track track{.name = std::move(name)};
    std::vector<std::chrono::microseconds> times;
    for (const drawing::Phase& phase : phases) {
        for (std::size_t i = 0; i < (phase.end - phase.begin) * phase.requests; ++i) {
            clock.set(phase.begin * drawing::slice + i * drawing::slice / phase.requests);
            if (!passes()) continue;
            ++track.counts[phase.begin + i / phase.requests];
            times.push_back(clock.now());
            const auto second = std::upper_bound(times.begin(), times.end(), clock.now() - 1s);
            track.in_a_second = (std::max)(track.in_a_second, static_cast<std::size_t>(times.end() - second));
        }
    }
    track.total = times.size();
    return track;
}

template <class Algorithm>
drawing::Track send_through(std::string name, const Algorithm& algorithm) {
    const penstock::ManualClock clock;
    penstock::Limiter limiter{algorithm, {}, clock};
    return send(std::move(name), clock, [&] { return limiter.check("user:42").allowed; });
}

drawing::Timeline compare() {
    const penstock::TokenBucket bucket{.capacity = 8, .refill = penstock::per_second(8)};
    const penstock::SlidingWindow sliding{.limit = 8, .window = 1s};
    const penstock::FixedWindow fixed{.limit = 8, .window = 1s};
    const penstock::TokenBucket small{.capacity = 2, .refill = penstock::per_second(8)};
    return {.title = "One client, limited to 8 requests per second",
            .phases = phases,
            .requests = send("requests", {}, [] { return true; }),
            .tracks = {send_through("TokenBucket: 8 at once, then 8 per second", bucket),
                       send_through("SlidingWindow: 8 per second", sliding),
                       send_through("FixedWindow: 8 per second", fixed),
                       send_through("AllOf: TokenBucket of 2, FixedWindow of 8", penstock::AllOf{small, fixed})}};
}

}  // namespace

int main(int argc, char** argv) {
    return support::print_or_draw(
        argc,
        argv,
        "compare_algorithms",
        [] { drawing::print(compare()); },
        [](std::ostream& file) { drawing::write_svg(file, compare()); });
}
