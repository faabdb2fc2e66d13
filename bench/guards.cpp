// SPDX-License-Identifier: MIT
// What guards cost and save: against the storage alone, and against asking the store for every check.
#include "guards/leased.hpp"
#include "guards/local.hpp"
#include "guards/options.hpp"
#include "options.hpp"
#include "report.hpp"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
    const auto options = bench::parse<bench::GuardsOptions>(argc, argv, "local|leased");
    bench::Report report{options.quick ? "guards --quick" : "guards"};
    if (options.wants("local")) bench::measure_local(report, options);
    if (options.wants("leased")) bench::measure_leased(report, options);
    if (!options.json.empty()) report.write_json(options.json);
    return 0;
} catch (const std::exception& failure) {
    std::fprintf(stderr, "\n%s\n", failure.what());
    return 1;
}
