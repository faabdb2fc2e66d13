// SPDX-License-Identifier: MIT
// How fast the core is: against the least possible work, against what a team would write instead, and in memory.
#include <cstdio>
#include <exception>

#include "core/clocks.hpp"
#include "core/compile.hpp"
#include "core/filling.hpp"
#include "core/hot.hpp"
#include "core/many.hpp"
#include "core/options.hpp"
#include "core/verify.hpp"
#include "report.hpp"

int main(int argc, char** argv) try {
    const auto options = bench::parse<bench::CoreOptions>(argc, argv, "filling|hot|many|clocks|compile");
    bench::Report report{options.quick ? "core --quick" : "core"};
    bench::verify_all();
    if (options.wants("filling")) bench::measure_filling(report, options);
    if (options.wants("hot")) bench::measure_hot(report, options);
    if (options.wants("many")) bench::measure_many(report, options);
    if (options.wants("clocks")) bench::measure_clocks(report, options);
    if (options.wants("compile")) bench::measure_compile(report, options);
    if (!options.json.empty()) report.write_json(options.json);
    return 0;
} catch (const std::exception& failure) {
    std::fprintf(stderr, "\n%s\n", failure.what());
    return 1;
}
