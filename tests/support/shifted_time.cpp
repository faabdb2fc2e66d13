// SPDX-License-Identifier: MIT
// Preloaded into a process, its wall clock is what ShiftedTime says. Steady clocks stay as they are.
#include "shifted_time.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

support::SharedShift* shift = nullptr;

__attribute__((constructor)) void begin() {
    const char* const path = ::getenv(support::shift_variable);
    shift = path == nullptr ? nullptr : support::map_shift(path);
    ::unsetenv("LD_PRELOAD");  // the processes that this one starts have the time as it is
}

/// Not through the C library, whose function is replaced here.
int kernel_time(clockid_t clock, timespec* time) {
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
}

timespec shifted(timespec time) {
    if (shift == nullptr) {
        return time;
    }
    const std::int64_t micros = shift->micros;
    const std::int64_t nanos = shift->stands ? 0 : time.tv_nsec;
    std::int64_t seconds = (shift->stands ? 0 : time.tv_sec) + micros / 1'000'000;
    std::int64_t rest = nanos + micros % 1'000'000 * 1000;
    seconds += rest < 0 ? -1 : rest / 1'000'000'000;
    rest = rest < 0 ? rest + 1'000'000'000 : rest % 1'000'000'000;
    return {seconds, rest};
}

timespec wall_time() {
    timespec time{};
    kernel_time(CLOCK_REALTIME, &time);
    return shifted(time);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const int result = kernel_time(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        *time = shifted(*time);
    }
    return result;
}

int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
    const timespec now = wall_time();
    *time = {now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t* seconds) noexcept {
    const time_t now = wall_time().tv_sec;
    if (seconds != nullptr) {
        *seconds = now;
    }
    return now;
}

}  // extern "C"
