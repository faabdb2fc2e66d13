// SPDX-License-Identifier: MIT
// What including the library costs a build, against the two standard headers it cannot do without.
#ifndef PENSTOCK_BENCH_CORE_COMPILE_HPP
#define PENSTOCK_BENCH_CORE_COMPILE_HPP

#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness.hpp"
#include "../report.hpp"
#include "options.hpp"

namespace bench {

#if defined(PENSTOCK_BENCH_COMPILER) && defined(PENSTOCK_BENCH_INCLUDE)

/// Processor seconds of one compiler run that reads these headers and nothing else.
[[nodiscard]] inline double compile_seconds(std::initializer_list<const char*> headers) {
    std::vector<const char*> command{
        PENSTOCK_BENCH_COMPILER, "-std=c++20", "-fsyntax-only", "-I", PENSTOCK_BENCH_INCLUDE};
    for (const char* header : headers) {
        command.insert(command.end(), {"-include", header});
    }
    command.insert(command.end(), {"-x", "c++", "/dev/null", nullptr});
    const pid_t child = fork();
    if (child == 0) {
        execvp(command[0], const_cast<char* const*>(command.data()));
        _exit(127);
    }
    int status = 1;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    if (status != 0) throw WrongAnswer{"the compiler failed on its own, in the measurement of compile time"};
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

inline void measure_compile(Report& report, const CoreOptions& options) {
    std::vector<double> ours;
    std::vector<double> reference;
    for (int turn = 0; turn < options.turns; ++turn) {
        Report::progress("compiling, turn " + std::to_string(turn + 1) + " of " + std::to_string(options.turns));
        ours.push_back(compile_seconds({"penstock/penstock.hpp"}));
        reference.push_back(compile_seconds({"chrono", "atomic"}));
    }
    report.add(
        {"compile penstock.hpp / <chrono> + <atomic>", median(ours), median(reference), Unit::seconds, at_most(1.6)});
}

#else

inline void measure_compile(Report& /*report*/, const CoreOptions& /*options*/) {
    std::fprintf(stderr, "compile time: left out (built without PENSTOCK_BENCH_COMPILER and PENSTOCK_BENCH_INCLUDE)\n");
}

#endif

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_COMPILE_HPP
