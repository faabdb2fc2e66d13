// SPDX-License-Identifier: MIT
// How large and how long a run of the Redis benchmark is: [--quick] [--json FILE] [--only GROUP].
#ifndef PENSTOCK_BENCH_REDIS_OPTIONS_HPP
#define PENSTOCK_BENCH_REDIS_OPTIONS_HPP

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

struct Options {
    std::string json;              // empty: no file
    std::string only;              // a group's name; empty: all groups
    std::size_t clients = 50'000;  // of all groups but memory
    std::size_t block = 100'000;   // pipelined checks of a side's turn
    int turns = 9;
    int short_turns = 100;           // of 500 checks, one at a time
    std::size_t each_of_64 = 400;    // checks of each of 64 threads in a turn
    std::size_t stored = 1'000'000;  // clients in memory
    int schedule_turns = 50;         // of 2,500 checks in an open loop
    bool quick = false;

    [[nodiscard]] bool wants(std::string_view group) const noexcept { return only.empty() || only == group; }

    /// As the names of the lines say it.
    [[nodiscard]] std::string many() const { return quick ? "100,000" : "1 million"; }
};

[[nodiscard]] inline Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        const bool has_value = i + 1 < argc;
        if (argument == "--quick") {
            options.quick = true;
            options.block = 25'000;
            options.turns = 3;
            options.short_turns = 20;
            options.each_of_64 = 100;
            options.stored = 100'000;
            options.schedule_turns = 10;
        } else if (argument == "--json" && has_value) {
            options.json = argv[++i];
        } else if (argument == "--only" && has_value) {
            options.only = argv[++i];
        } else {
            throw std::invalid_argument{
                "options: --quick, --json FILE, --only blocking|pipelined|scripts|memory|schedule|hang"};
        }
    }
    return options;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_OPTIONS_HPP
