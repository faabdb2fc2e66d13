// SPDX-License-Identifier: MIT
// A server that hangs: how long a check takes, of which nothing but the timeout can be the end.
#ifndef PENSTOCK_BENCH_REDIS_HANG_HPP
#define PENSTOCK_BENCH_REDIS_HANG_HPP

#include <penstock/penstock_redis.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "../../tests/support/redis_server.hpp"
#include "../report.hpp"

namespace bench {

inline void measure_hang(Report& report) {
    using Clock = std::chrono::steady_clock;
    const support::RedisServer server;
    constexpr std::chrono::milliseconds timeout{5};
    penstock::Limiter limiter{
        penstock::TokenBucket{.capacity = 1'000'000, .refill = penstock::per_hour(1)},
        penstock::RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(server.port()), .timeout = timeout}}};
    while (limiter.check("client").source != penstock::Source::store) {
    }
    Report::progress("a server that hangs");
    server.stop();
    std::vector<double> nanos;
    for (int i = 0; i < 150; ++i) {  // after a second the connection is given up, and checks fail at once
        const Clock::time_point begin = Clock::now();
        const penstock::Decision decision = limiter.check("client");
        nanos.push_back(std::chrono::duration<double, std::nano>{Clock::now() - begin}.count());
        if (decision.source != penstock::Source::fail_open) throw WrongAnswer{"a server that hangs decides"};
    }
    server.resume();
    std::sort(nanos.begin(), nanos.end());
    report.add({"p99 while the server hangs / the timeout",
                nanos[nanos.size() * 99 / 100],
                std::chrono::duration<double, std::nano>{timeout}.count(),
                Unit::nanoseconds,
                at_most(1.4)});  // timeout + 2 ms
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_HANG_HPP
