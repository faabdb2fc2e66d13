// SPDX-License-Identifier: MIT
// How fast limits in Redis are: against bare clients that send the same commands, and against the textbook script.
#include <cstdio>
#include <exception>

#include "redis/blocking.hpp"
#include "redis/faults.hpp"
#include "redis/fleet.hpp"
#include "redis/memory.hpp"
#include "redis/options.hpp"
#include "redis/pipelined.hpp"
#include "redis/schedule.hpp"
#include "redis/scripts.hpp"
#include "redis/verify.hpp"
#include "report.hpp"

int main(int argc, char** argv) try {
    const auto options =
        bench::parse<bench::RedisOptions>(argc, argv, "blocking|pipelined|scripts|memory|schedule|faults");
    bench::Report report{options.quick ? "redis --quick" : "redis"};
    bench::Fleet fleet;
    bench::verify_all();
    if (options.wants("blocking")) bench::measure_blocking(report, options);
    if (options.wants("pipelined")) bench::measure_pipelined(report, options);
    if (options.wants("scripts")) bench::measure_scripts(report, options, fleet);
    if (options.wants("memory")) bench::measure_memory(report, options, fleet);
    if (options.wants("schedule")) bench::measure_schedule(report, options);
    if (options.wants("faults")) bench::measure_faults(report);
    fleet.print();
    if (!options.json.empty()) report.write_json(options.json);
    return 0;
} catch (const std::exception& failure) {
    std::fprintf(stderr, "\n%s\n", failure.what());
    return 1;
}
