// SPDX-License-Identifier: MIT
// Runs lanes in turns within one process on google-benchmark, and gives the median of each.
#ifndef PENSTOCK_BENCH_HARNESS_HPP
#define PENSTOCK_BENCH_HARNESS_HPP

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "report.hpp"

namespace bench {

/// One side of a comparison.
struct Lane {
    std::string name;
    std::size_t checks;                    // that each thread makes in a pass
    std::function<void(int thread)> pass;  // timed
    std::function<void()> verify = [] {};  // after each pass, not timed; throws WrongAnswer
    int threads = 1;
};

/// Nanoseconds a check, as each thread sees it. Processor time leaves out what else runs on the machine, and waiting.
struct Nanos {
    double processor;
    double real;
};

[[nodiscard]] inline double median(std::vector<double> all) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
}

/// Collects the times of every pass of every lane instead of printing them.
class Samples : public benchmark::BenchmarkReporter {
public:
    explicit Samples(const std::vector<Lane>& lanes) : lanes_{lanes}, processor_(lanes.size()), real_(lanes.size()) {}

    bool ReportContext(const Context&) override { return true; }

    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            const auto lane = static_cast<std::size_t>(std::stoul(run.run_name.function_name));
            const auto checks = static_cast<double>(lanes_[lane].checks);
            // google-benchmark adds the threads' processor times up, and averages their real times.
            processor_[lane].push_back(run.cpu_accumulated_time * 1e9 / checks / lanes_[lane].threads);
            real_[lane].push_back(run.real_accumulated_time * 1e9 / checks);
        }
    }

    [[nodiscard]] std::vector<Nanos> medians() const {
        std::vector<Nanos> result;
        for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
            result.push_back({median(processor_[lane]), median(real_[lane])});
        }
        return result;
    }

    void forget() {
        processor_.assign(lanes_.size(), {});
        real_.assign(lanes_.size(), {});
    }

private:
    const std::vector<Lane>& lanes_;
    std::vector<std::vector<double>> processor_;
    std::vector<std::vector<double>> real_;
};

inline void run_pass(benchmark::State& state, const Lane& lane, std::exception_ptr& failure) {
    for (auto _ : state) {
        lane.pass(state.thread_index());
    }
    // All threads have stopped here. What verify throws must not pass through google-benchmark.
    if (state.thread_index() != 0) return;
    try {
        lane.verify();
    } catch (...) {
        if (!failure) failure = std::current_exception();
    }
}

/// Each lane once, then each again, and so on: what slows the machine for a while slows all lanes alike. The first turn
/// only warms up. Returns each lane's medians.
[[nodiscard]] inline std::vector<Nanos> take_turns(const std::string& name, const std::vector<Lane>& lanes, int turns) {
    std::exception_ptr failure;
    benchmark::ClearRegisteredBenchmarks();
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        const auto run = [&lane = lanes[i], &failure](benchmark::State& state) { run_pass(state, lane, failure); };
        benchmark::RegisterBenchmark(std::to_string(i).c_str(), run)
            ->Iterations(1)
            ->Threads(lanes[i].threads)
            ->UseRealTime();
    }
    Samples samples{lanes};
    for (int turn = 0; turn <= turns; ++turn) {
        Report::progress(name + ": turn " + std::to_string(turn) + " of " + std::to_string(turns));
        benchmark::RunSpecifiedBenchmarks(&samples, ".");
        if (failure) std::rethrow_exception(failure);
        if (turn == 0) samples.forget();
    }
    return samples.medians();
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_HARNESS_HPP
