// SPDX-License-Identifier: MIT
// What a large fleet needs, reckoned from what a check and a client cost.
#ifndef PENSTOCK_BENCH_REDIS_FLEET_HPP
#define PENSTOCK_BENCH_REDIS_FLEET_HPP

#include <cmath>
#include <cstdio>

#include "../report.hpp"

namespace bench {

/// 500,000 checks a second of 50 million clients, in the packed layout.
struct Fleet {
    static constexpr double checks_per_second = 500'000;
    static constexpr double clients = 50e6;
    static constexpr double most_load = 0.7;  // of a master's core, so that its queue stays short

    double nanos_per_check = 0;
    double bytes_per_client = 0;

    void print() const {
        if (nanos_per_check == 0 || bytes_per_client == 0) return;
        Report::progress("");
        const double cores = checks_per_second * nanos_per_check / 1e9;
        const double masters = std::ceil(cores / most_load);
        const double gibibytes = clients * bytes_per_client / std::exp2(30);
        std::printf("\nA fleet of 500,000 checks/s and 50 million clients, packed:\n");
        std::printf("  500,000/s x %.2f us of server CPU = %.2f cores\n", nanos_per_check / 1e3, cores);
        std::printf("  / %.0f %% load of a master's core = %.0f masters\n", most_load * 100, masters);
        std::printf(
            "  50 M x %.1f B = %.2f GiB in all, %.2f GiB a master\n", bytes_per_client, gibibytes, gibibytes / masters);
    }
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_FLEET_HPP
