// SPDX-License-Identifier: MIT
// How large and how long a run of the core's benchmark is.
#ifndef PENSTOCK_BENCH_CORE_OPTIONS_HPP
#define PENSTOCK_BENCH_CORE_OPTIONS_HPP

#include <cstddef>
#include <string>

#include "../options.hpp"

namespace bench {

struct CoreOptions : CommonOptions {
    std::size_t clients = 10'000'000;
    std::size_t pass = 500'000;  // checks of a lane's turn
    int turns = 15;

    void be_quick() {
        clients = 1'000'000;
        pass = 100'000;
        turns = 7;
    }

    /// As the names of the lines say it.
    [[nodiscard]] std::string many() const { return std::to_string(clients / 1'000'000) + " M keys"; }
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_OPTIONS_HPP
