// SPDX-License-Identifier: MIT
// Event: one thread waits, with an end, for what another tells it.
#ifndef PENSTOCK_REDIS_EVENT_HPP
#define PENSTOCK_REDIS_EVENT_HPP

#include <penstock/config.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <cerrno>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Set once, by one thread; waited for by another, which may destroy it as soon as it has seen it set.
class Event {
public:
    [[nodiscard]] bool is_set() const noexcept { return state_.load(std::memory_order_acquire) == set_state; }

    void set() noexcept { wake(mark()); }

    /// Sets it, but leaves the waiter to be woken by `wake`, which is given what this returns: so that whoever holds a
    /// lock that the waiter will want can give it back first.
    using Sleeper = const void*;

#if defined(__linux__)
    [[nodiscard]] Sleeper mark() noexcept {
        return state_.exchange(set_state, std::memory_order_acq_rel) == waited_for ? &state_ : nullptr;
    }

    static void wake(Sleeper sleeper) noexcept {
        if (sleeper != nullptr) {
            // The waiter may be gone by now, and its memory: the address is all that is used of it.
            syscall(SYS_futex, sleeper, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        }
    }

    /// Until it is set, or steady time (microseconds) reaches `end`. Whether it is set.
    bool wait_until(std::int64_t end) noexcept {
        const std::timespec until{static_cast<std::time_t>(end / 1'000'000), static_cast<long>(end % 1'000'000 * 1000)};
        std::uint32_t expected = 0;
        state_.compare_exchange_strong(expected, waited_for, std::memory_order_acq_rel);
        while (!is_set()) {
            // Absolute steady time; interruptions and false alarms look again.
            const long woken = syscall(
                SYS_futex, &state_, FUTEX_WAIT_BITSET_PRIVATE, waited_for, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
            if (woken != 0 && errno == ETIMEDOUT) {
                return is_set();
            }
        }
        return true;
    }
#else
    [[nodiscard]] Sleeper mark() noexcept {
        const std::lock_guard lock(mutex_);
        state_.store(set_state, std::memory_order_release);
        changed_.notify_one();
        return nullptr;
    }

    static void wake(Sleeper) noexcept {}

    bool wait_until(std::int64_t end) noexcept {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(
            lock, std::chrono::steady_clock::time_point{std::chrono::microseconds{end}}, [this] { return is_set(); });
    }
#endif

private:
    static constexpr std::uint32_t waited_for = 1;
    static constexpr std::uint32_t set_state = 2;

    std::atomic<std::uint32_t> state_{0};
#if !defined(__linux__)
    std::mutex mutex_;
    std::condition_variable changed_;
#endif
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_EVENT_HPP
