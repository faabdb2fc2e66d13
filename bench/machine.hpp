// SPDX-License-Identifier: MIT
// What a figure must be read with: processor, system, compiler, flags, date.
#ifndef PENSTOCK_BENCH_MACHINE_HPP
#define PENSTOCK_BENCH_MACHINE_HPP

#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/utsname.h>

#ifndef PENSTOCK_BENCH_FLAGS
#define PENSTOCK_BENCH_FLAGS "flags unknown (built without PENSTOCK_BENCH_FLAGS)"
#endif

namespace bench {

using Facts = std::vector<std::pair<std::string, std::string>>;

/// What follows the colon on the first line of the file that starts with `label`.
[[nodiscard]] inline std::string value_in(const char* file, std::string_view label) {
    std::ifstream in{file};
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(label)) continue;
        const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
        return value == std::string::npos ? "" : line.substr(value);
    }
    return "unknown";
}

[[nodiscard]] inline std::string first_line(const char* file) {
    std::string line;
    std::getline(std::ifstream{file} >> std::ws, line);
    return line;
}

[[nodiscard]] inline Facts describe_machine(std::string_view program) {
    utsname system{};
    uname(&system);
    const std::time_t now = std::time(nullptr);
    char date[32];
    std::strftime(date, sizeof date, "%FT%TZ", std::gmtime(&now));
#ifdef __clang__
    const std::string compiler = "clang++ " __clang_version__;
#else
    const std::string compiler = "g++ " __VERSION__;
#endif
    return {{"program", std::string{program}},
            {"machine",
             value_in("/proc/cpuinfo", "model name") + ", " + std::to_string(std::thread::hardware_concurrency()) +
                 " cores, " + value_in("/proc/meminfo", "MemTotal") + ", Linux " + system.release},
            {"pages", "large pages: " + first_line("/sys/kernel/mm/transparent_hugepage/enabled")},
            {"compiler", compiler + ", " PENSTOCK_BENCH_FLAGS},
            {"date", date}};
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_MACHINE_HPP
