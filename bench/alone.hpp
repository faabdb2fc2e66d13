// SPDX-License-Identifier: MIT
// Measures one contender in a process of its own: its memory and its page faults are nobody else's.
#ifndef PENSTOCK_BENCH_ALONE_HPP
#define PENSTOCK_BENCH_ALONE_HPP

#include <cstddef>
#include <fstream>
#include <type_traits>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.hpp"

namespace bench {

[[nodiscard]] inline double resident_bytes() {
    double pages = 0;
    std::ifstream{"/proc/self/statm"} >> pages >> pages;
    return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Runs `measure` in a child, which starts without the memory that this process has freed but kept.
template <class Measure>
[[nodiscard]] auto alone(Measure measure) {
    using Result = std::invoke_result_t<Measure>;
    static_assert(std::is_trivially_copyable_v<Result>, "the result comes back through a pipe");
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error{"no pipe"};
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        malloc_trim(0);
        const Result result = measure();
        _exit(write(ends[1], &result, sizeof result) == static_cast<ssize_t>(sizeof result) ? 0 : 1);
    }
    close(ends[1]);
    Result result{};
    const bool complete = read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
    close(ends[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    if (!complete) throw WrongAnswer{"a contender measured in a process of its own ended early"};
    return result;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_ALONE_HPP
