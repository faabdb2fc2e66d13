// SPDX-License-Identifier: MIT
// How large and how long a run of the core's benchmark is: [--quick] [--json FILE] [--only GROUP].
#ifndef PENSTOCK_BENCH_CORE_OPTIONS_HPP
#define PENSTOCK_BENCH_CORE_OPTIONS_HPP

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

struct Options {
    std::string json;  // empty: no file
    std::string only;  // a group's name; empty: all groups
    std::size_t clients = 10'000'000;
    std::size_t pass = 500'000;  // checks of a lane's turn
    int turns = 15;
    bool quick = false;

    [[nodiscard]] bool wants(std::string_view group) const noexcept { return only.empty() || only == group; }

    /// As the names of the lines say it.
    [[nodiscard]] std::string many() const { return std::to_string(clients / 1'000'000) + " M keys"; }
};

[[nodiscard]] inline Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        const bool has_value = i + 1 < argc;
        if (argument == "--quick") {
            options.quick = true;
            options.clients = 1'000'000;
            options.pass = 100'000;
            options.turns = 7;
        } else if (argument == "--json" && has_value) {
            options.json = argv[++i];
        } else if (argument == "--only" && has_value) {
            options.only = argv[++i];
        } else {
            throw std::invalid_argument{"options: --quick, --json FILE, --only filling|hot|many|clocks|compile"};
        }
    }
    return options;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_OPTIONS_HPP
