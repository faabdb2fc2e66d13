// SPDX-License-Identifier: MIT
// The few things asked of the operating system: coarse time, a nap, a yield, random bits.
#ifndef PENSTOCK_DETAIL_OS_HPP
#define PENSTOCK_DETAIL_OS_HPP

#include <penstock/config.hpp>

#include <chrono>
#include <cstdint>

#if defined(__unix__) || defined(__APPLE__)
#define PENSTOCK_POSIX 1
#include <cerrno>
#include <ctime>
#include <sched.h>
#include <unistd.h>
#if __has_include(<sys/random.h>)
#include <sys/random.h>
#endif
#else
#define PENSTOCK_POSIX 0
#include <random>
#include <thread>
#endif

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Tells the core that this thread spins.
inline void cpu_relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();  // <immintrin.h> would double the time that the core takes to compile
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

inline void yield_thread() noexcept {
#if PENSTOCK_POSIX
    sched_yield();
#else
    std::this_thread::yield();
#endif
}

/// Sleeps at least this long; interruptions by signals do not shorten it.
inline void sleep_for(std::chrono::microseconds duration) noexcept {
    if (duration.count() <= 0) {
        return;
    }
#if PENSTOCK_POSIX
    std::timespec left{static_cast<std::time_t>(duration.count() / 1'000'000),
                       static_cast<long>(duration.count() % 1'000'000 * 1000)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
#else
    std::this_thread::sleep_for(duration);
#endif
}

#if PENSTOCK_POSIX
[[nodiscard]] inline std::chrono::microseconds read_clock(clockid_t clock) noexcept {
    std::timespec time;
    clock_gettime(clock, &time);
    return std::chrono::seconds{time.tv_sec} +
           std::chrono::microseconds{static_cast<std::uint32_t>(time.tv_nsec) / 1000};
}
#endif

/// Steady time: what std::chrono::steady_clock reads, without the detour.
[[nodiscard]] inline std::chrono::microseconds steady_now() noexcept {
#if defined(__linux__)
    return read_clock(CLOCK_MONOTONIC);
#else
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch());
#endif
}

/// Steady time at the resolution of the system's timer tick, which is cheaper to read where the system has it.
[[nodiscard]] inline std::chrono::microseconds coarse_steady_now() noexcept {
#if defined(CLOCK_MONOTONIC_COARSE)
    return read_clock(CLOCK_MONOTONIC_COARSE);
#else
    return steady_now();
#endif
}

/// 64 bits that nobody can guess.
[[nodiscard]] inline std::uint64_t random_bits() noexcept {
    std::uint64_t bits = 0;
#if PENSTOCK_POSIX
    if (getentropy(&bits, sizeof bits) == 0) {
        return bits;
    }
    // Without a source of randomness the addresses and the time still differ from process to process.
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&bits));
    const auto time = static_cast<std::uint64_t>(steady_now().count());
    return address * 0x9e3779b97f4a7c15U ^ time;
#else
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
#endif
}

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_OS_HPP
