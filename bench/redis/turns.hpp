// SPDX-License-Identifier: MIT
// Sides take turns on one server, in short blocks; the medians of what their blocks took are compared.
#ifndef PENSTOCK_BENCH_REDIS_TURNS_HPP
#define PENSTOCK_BENCH_REDIS_TURNS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "../harness.hpp"
#include "../report.hpp"
#include "server.hpp"

namespace bench {

/// Nanoseconds a check. Which of them are measured is up to the side.
struct Figures {
    double real = 0;
    double client = 0;   // processor time of this process
    double server = 0;   // processor time of the server
    double latency = 0;  // a quantile of what single checks took
};

/// From its making on: what this process and the server spend.
class Meter {
public:
    explicit Meter(Server& server) : server_{server} {}

    [[nodiscard]] Figures per_check(std::size_t checks) {
        const auto count = static_cast<double>(checks);
        const double real = real_now() - real_;
        const double client = client_now() - client_;
        return {.real = real / count, .client = client / count, .server = (server_.processor_time() - spent_) / count};
    }

private:
    [[nodiscard]] static double real_now() {
        return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1});
    }

    [[nodiscard]] static double client_now() {
        std::timespec time{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
    }

    Server& server_;
    double spent_ = server_.processor_time();
    double client_ = client_now();
    double real_ = real_now();
};

struct Side {
    std::string name;
    std::function<Figures()> block;  // throws WrongAnswer
};

[[nodiscard]] inline double median_of(const std::vector<Figures>& all, double Figures::*figure) {
    std::vector<double> values;
    for (const Figures& each : all) {
        values.push_back(each.*figure);
    }
    return median(values);
}

[[nodiscard]] inline Figures medians_of(const std::vector<Figures>& all) {
    return {.real = median_of(all, &Figures::real),
            .client = median_of(all, &Figures::client),
            .server = median_of(all, &Figures::server),
            .latency = median_of(all, &Figures::latency)};
}

/// Each side once, then each again, and so on, there and back, so that none always follows the same other. The first
/// turn only warms up. Returns each side's medians.
[[nodiscard]] inline std::vector<Figures> take_turns(const std::string& what,
                                                     const std::vector<Side>& sides,
                                                     int turns) {
    std::vector<std::vector<Figures>> figures(sides.size());
    for (int turn = 0; turn <= turns; ++turn) {
        for (std::size_t i = 0; i < sides.size(); ++i) {
            const std::size_t side = turn % 2 == 0 ? i : sides.size() - 1 - i;
            Report::progress(what + ": turn " + std::to_string(turn) + " of " + std::to_string(turns) + ", " +
                             sides[side].name);
            const Figures block = sides[side].block();
            if (turn > 0) figures[side].push_back(block);
        }
    }
    std::vector<Figures> result;
    for (const std::vector<Figures>& its : figures) {
        result.push_back(medians_of(its));
    }
    return result;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_TURNS_HPP
