// SPDX-License-Identifier: MIT
// One hot key in this process: what a guard adds to a check, and what a check costs that a guard decides alone.
#ifndef PENSTOCK_BENCH_GUARDS_LOCAL_HPP
#define PENSTOCK_BENCH_GUARDS_LOCAL_HPP

#include <penstock/guard/denied_cache.hpp>
#include <penstock/guard/guarded.hpp>
#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include <chrono>
#include <span>
#include <string>

#include "../core/hot.hpp"
#include "../core/ours.hpp"
#include "../harness.hpp"
#include "../peers/loops.hpp"
#include "../report.hpp"
#include "options.hpp"

namespace bench {

/// A limiter as a contender.
template <class Limiter>
class Limited {
public:
    explicit Limited(Limiter& limiter) : limiter_{limiter} {}

    Answer check(std::string_view key) { return answer_of(limiter_.check(key)); }

private:
    Limiter& limiter_;
};

template <class Limiter>
[[nodiscard]] RunKeys run_of_limiter(Limiter& limiter) {
    return [&limiter](std::span<const Key> keys) {
        Limited contender{limiter};
        return run_all(contender, keys);
    };
}

[[nodiscard]] inline penstock::LocalStorage small_table() {
    return penstock::LocalStorage{{.max_keys = 1000, .prefault = true, .seed = 1}};
}

/// A store at a port where nobody is: its breaker opens with the first checks, and nobody probes while it is measured.
[[nodiscard]] inline auto store_that_is_away() {
    return penstock::Guarded{
        penstock::RedisStorage{{.url = "redis://127.0.0.1:1"}},
        {.on_failure = penstock::Local{.max_keys = 1000}, .breaker = {.probe_interval = std::chrono::hours{1}}}};
}

inline void measure_local(Report& report, const GuardsOptions& options) {
    const auto generous = bucket_of(generous_limit);
    const auto mean = bucket_of(mean_limit);
    penstock::Limiter bare{generous, small_table()};
    penstock::Limiter closed{generous, penstock::Guarded{small_table()}};
    penstock::Limiter open{generous, store_that_is_away()};
    penstock::Limiter rejecting{mean, small_table()};
    penstock::Limiter remembering{mean, penstock::DeniedCache{small_table(), {.max_age = std::chrono::hours{1}}}};
    const Key key = key_of(42);
    (void)rejecting.check(key.view());
    (void)remembering.check(key.view());
    for (int i = 0; i < 1000 && open.check(key.view()).source == penstock::Source::store; ++i) {
    }

    const auto figures = take_turns("guards in this process",
                                    std::vector<Lane>{hot_lane("alone", run_of_limiter(bare), true),
                                                      hot_lane("breaker closed", run_of_limiter(closed), true),
                                                      hot_lane("breaker open", run_of_limiter(open), true),
                                                      hot_lane("rejected", run_of_limiter(rejecting), false),
                                                      hot_lane("denied cache", run_of_limiter(remembering), false)},
                                    options.turns);
    const auto add = [&](const char* name, std::size_t ours, std::size_t reference, Goal goal) {
        report.add({name, figures[ours].processor, figures[reference].processor, Unit::nanoseconds, goal});
    };
    add("Guarded, breaker closed / the storage alone", 1, 0, at_most(1.15));
    add("Guarded, breaker open, Local / LocalStorage", 2, 0, at_most(1.5));
    add("DeniedCache, hit / rejected by LocalStorage", 4, 3, at_most(1.2));
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_GUARDS_LOCAL_HPP
