// SPDX-License-Identifier: MIT
// How long a run of the guards' benchmark is.
#ifndef PENSTOCK_BENCH_GUARDS_OPTIONS_HPP
#define PENSTOCK_BENCH_GUARDS_OPTIONS_HPP

#include <cstddef>

#include "../options.hpp"

namespace bench {

struct GuardsOptions : CommonOptions {
    int turns = 15;
    std::size_t asked = 100'000;   // checks of a turn that the store is asked for
    std::size_t hot = 2'000'000;   // checks of one key in a turn, of each of two threads
    std::size_t clients = 10'000;  // of even traffic
    std::size_t rounds = 100;      // in which each of them checks once
    std::size_t paced = 5'000;     // checks of a turn at a steady rate

    void be_quick() {
        turns = 5;
        asked = 25'000;
        hot = 500'000;
        rounds = 60;
        paced = 2'000;
    }
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_GUARDS_OPTIONS_HPP
