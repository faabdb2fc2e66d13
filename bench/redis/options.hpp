// SPDX-License-Identifier: MIT
// How large and how long a run of the Redis benchmark is.
#ifndef PENSTOCK_BENCH_REDIS_OPTIONS_HPP
#define PENSTOCK_BENCH_REDIS_OPTIONS_HPP

#include <cstddef>
#include <string>

#include "../options.hpp"

namespace bench {

struct RedisOptions : CommonOptions {
    std::size_t clients = 50'000;  // of all groups but memory
    std::size_t block = 100'000;   // pipelined checks of a side's turn
    int turns = 9;
    int short_turns = 100;           // of 500 checks, one at a time
    std::size_t each_of_64 = 2000;   // checks of each of 64 threads in a turn
    std::size_t stored = 1'000'000;  // clients in memory
    int schedule_turns = 50;         // of 2,500 checks in an open loop

    void be_quick() {
        block = 25'000;
        turns = 3;
        short_turns = 20;
        each_of_64 = 100;
        stored = 100'000;
        schedule_turns = 10;
    }

    /// As the names of the lines say it.
    [[nodiscard]] std::string many() const { return quick ? "100,000" : "1 million"; }
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_OPTIONS_HPP
