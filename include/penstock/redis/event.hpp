// SPDX-License-Identifier: MIT
// Event: one thread waits, with an end, for what another tells it; and what wakes many of them at once.
#ifndef PENSTOCK_REDIS_EVENT_HPP
#define PENSTOCK_REDIS_EVENT_HPP

#include <penstock/config.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

#if defined(__linux__)
#include <cerrno>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// What the waiters of several events sleep by: one system call wakes them all. Thread-safe.
class Bell {
public:
    [[nodiscard]] std::uint32_t strokes() const noexcept { return strokes_.load(std::memory_order_acquire); }

#if defined(__linux__)
    /// Whoever counted the strokes before does not fall asleep any more.
    void strike() noexcept {
        strokes_.fetch_add(1, std::memory_order_release);
    }

    /// Wakes those who sleep, once it was struck.
    void ring() noexcept {
        syscall(SYS_futex, &strokes_, FUTEX_WAKE_PRIVATE, everybody, nullptr, nullptr, 0);
    }

    /// Until it is rung, if it was not struck since `counted`, or steady time (microseconds) reaches `end`: then false.
    /// It may be a false alarm.
    [[nodiscard]] bool sleep(std::uint32_t counted, std::int64_t end) noexcept {
        const std::timespec until{static_cast<std::time_t>(end / 1'000'000), static_cast<long>(end % 1'000'000 * 1000)};
        const long woken =
            syscall(SYS_futex, &strokes_, FUTEX_WAIT_BITSET_PRIVATE, counted, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
        return woken == 0 || errno != ETIMEDOUT;
    }

private:
    static constexpr int everybody = (std::numeric_limits<int>::max)();
#else
    void strike() noexcept {
        const std::lock_guard lock(mutex_);
        strokes_.fetch_add(1, std::memory_order_release);
    }

    void ring() noexcept {
        struck_.notify_all();
    }

    [[nodiscard]] bool sleep(std::uint32_t counted, std::int64_t end) noexcept {
        std::unique_lock lock(mutex_);
        return struck_.wait_until(lock, std::chrono::steady_clock::time_point{std::chrono::microseconds{end}}, [&] {
            return strokes() != counted;
        });
    }

private:
    std::mutex mutex_;
    std::condition_variable struck_;
#endif

    alignas(64) std::atomic<std::uint32_t> strokes_{0};
};

/// Bells for waiters who come one after the other: those between two `move_on`, but 16 at most, share one. Some other
/// waiter may share it too, and is woken for nothing. Not thread-safe.
class Bells {
public:
    [[nodiscard]] Bell& take() noexcept {
        if (taken_ == most) {
            move_on();
        }
        ++taken_;
        return bells_[current_];
    }

    void move_on() noexcept {
        current_ = (current_ + 1) % bells_.size();
        taken_ = 0;
    }

private:
    static constexpr std::size_t most = 16;

    std::array<Bell, 64> bells_;
    std::size_t current_ = 0;
    std::size_t taken_ = 0;  // of the current one
};

/// Set once, by one thread; waited for by another, which may destroy it as soon as it has seen it set.
class Event {
public:
    [[nodiscard]] bool is_set() const noexcept { return state_.load(std::memory_order_acquire) == set_state; }

    /// What its waiter sleeps by: before the one waits or the other sets.
    void wake_by(Bell& bell) noexcept { bell_ = &bell; }

    /// Returns the bell if it has to be rung for the waiter: later, so that whoever holds a lock that the waiter will
    /// want can give it back first.
    [[nodiscard]] Bell* set() noexcept {
        Bell* const bell = bell_;  // once it is set the event may be gone
        if (state_.exchange(set_state, std::memory_order_acq_rel) != waited_for) {
            return nullptr;
        }
        bell->strike();
        return bell;
    }

    /// Until it is set, or steady time (microseconds) reaches `end`. Whether it is set.
    [[nodiscard]] bool wait_until(std::int64_t end) noexcept {
        std::uint32_t expected = 0;
        state_.compare_exchange_strong(expected, waited_for, std::memory_order_acq_rel);
        for (;;) {
            const std::uint32_t strokes = bell_->strokes();
            if (is_set()) {
                return true;
            }
            if (!bell_->sleep(strokes, end)) {
                return is_set();
            }
        }
    }

private:
    static constexpr std::uint32_t waited_for = 1;
    static constexpr std::uint32_t set_state = 2;

    std::atomic<std::uint32_t> state_{0};
    Bell* bell_ = nullptr;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_EVENT_HPP
