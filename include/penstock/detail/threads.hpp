// SPDX-License-Identifier: MIT
// Threads: how threads meet in a table: its atomics, how they wait for one another, its dimensions.
#ifndef PENSTOCK_DETAIL_THREADS_HPP
#define PENSTOCK_DETAIL_THREADS_HPP

#include <penstock/config.hpp>
#include <penstock/detail/os.hpp>

#include <atomic>
#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// How threads meet in a table, and its dimensions. A model test that explores all interleavings passes a smaller one.
struct Threads {
    template <class T>
    using Atomic = std::atomic<T>;

    static constexpr unsigned ways = 8;            // slots in a set
    static constexpr unsigned sequence_bits = 17;  // a reader is deceived only by exactly 2^17 writes between two loads
    static constexpr unsigned set_locks = 1024;

    /// Between two attempts of one operation: the holder of a lock needs nanoseconds, unless it was descheduled.
    static void pause(unsigned attempts) noexcept {
        if (attempts < 32) {
            cpu_relax();
        } else {
            yield_thread();
        }
    }
};

/// Holds a lock while it lives.
template <class Sync>
class SpinLock {
public:
    using Flag = typename Sync::template Atomic<std::uint32_t>;

    /// Waits for the lock.
    explicit SpinLock(Flag& lock) noexcept : lock_(lock) {
        for (unsigned attempts = 0; lock.exchange(1, std::memory_order_acquire) != 0; ++attempts) {
            Sync::pause(attempts);
        }
    }

    SpinLock(const SpinLock&) = delete;
    SpinLock& operator=(const SpinLock&) = delete;

    ~SpinLock() { lock_.store(0, std::memory_order_release); }

private:
    Flag& lock_;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_THREADS_HPP
