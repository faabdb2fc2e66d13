// SPDX-License-Identifier: MIT
// What every benchmark's command line may say: [--quick] [--json FILE] [--only GROUP].
#ifndef PENSTOCK_BENCH_OPTIONS_HPP
#define PENSTOCK_BENCH_OPTIONS_HPP

#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

struct CommonOptions {
    std::string json{};  // empty: no file
    std::string only{};  // a group's name; empty: all groups
    bool quick = false;

    [[nodiscard]] bool wants(std::string_view group) const noexcept { return only.empty() || only == group; }
};

/// `Options` have a member `be_quick()`, which makes a run smaller and shorter.
template <class Options>
[[nodiscard]] Options parse(int argc, char** argv, std::string_view groups) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        const bool has_value = i + 1 < argc;
        if (argument == "--quick") {
            options.quick = true;
            options.be_quick();
        } else if (argument == "--json" && has_value) {
            options.json = argv[++i];
        } else if (argument == "--only" && has_value) {
            options.only = argv[++i];
        } else {
            throw std::invalid_argument{"options: --quick, --json FILE, --only " + std::string{groups}};
        }
    }
    return options;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_OPTIONS_HPP
