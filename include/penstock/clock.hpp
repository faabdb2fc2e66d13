// SPDX-License-Identifier: MIT
// The clocks of a limiter. Any type with `std::chrono::microseconds now() const noexcept` is one.
#ifndef PENSTOCK_CLOCK_HPP
#define PENSTOCK_CLOCK_HPP

#include <penstock/config.hpp>
#include <penstock/detail/os.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

PENSTOCK_BEGIN_NAMESPACE

/// Time since boot, never back, whatever is done to the wall clock. About 25 ns a reading. Thread-safe.
struct SteadyClock {
    static constexpr bool counts_from_boot = true;

    [[nodiscard]] std::chrono::microseconds now() const noexcept { return detail::steady_now(); }
};

/// Time since boot as of the system's last timer tick: up to 10 ms late, a few nanoseconds a reading. A limiter on it
/// is exact in that time: what it promises to the microsecond holds by this clock. Thread-safe.
struct CoarseClock {
    static constexpr bool counts_from_boot = true;

    [[nodiscard]] std::chrono::microseconds now() const noexcept { return detail::coarse_steady_now(); }
};

/// Time since the Unix epoch as it was when the clock was made, then running with steady time: it never goes back and
/// ignores later changes of the wall clock. For windows that begin at the calendar's hours and days. Thread-safe.
class SystemClock {
public:
    SystemClock() noexcept : epoch_(measured_epoch()) {}

    [[nodiscard]] std::chrono::microseconds now() const noexcept { return epoch_ + SteadyClock{}.now(); }

private:
    /// Of a few tries the one between whose two readings of steady time the least has passed: a thread may be
    /// descheduled at any point.
    [[nodiscard]] static std::chrono::microseconds measured_epoch() noexcept {
        std::chrono::microseconds epoch{0};
        std::chrono::microseconds narrowest = (std::chrono::microseconds::max)();
        for (int attempt = 0; attempt < 3; ++attempt) {
            const std::chrono::microseconds before = SteadyClock{}.now();
            const auto wall = std::chrono::system_clock::now().time_since_epoch();
            const std::chrono::microseconds after = SteadyClock{}.now();
            if (after - before < narrowest) {
                narrowest = after - before;
                epoch = std::chrono::duration_cast<std::chrono::microseconds>(wall) - before;
            }
        }
        return epoch;
    }

    std::chrono::microseconds epoch_;
};

namespace detail {

/// A time that all copies of a handle share.
class SharedTime {
public:
    SharedTime() = default;
    SharedTime(const SharedTime&) = default;  // no move: what is moved from still tells the time
    SharedTime& operator=(const SharedTime&) = default;

    [[nodiscard]] std::chrono::microseconds load() const noexcept {
        return std::chrono::microseconds{time_->load(std::memory_order_relaxed)};
    }

    void store(std::chrono::microseconds time) const noexcept { time_->store(time.count(), std::memory_order_relaxed); }

    void add(std::chrono::microseconds step) const noexcept {
        time_->fetch_add(step.count(), std::memory_order_relaxed);
    }

private:
    std::shared_ptr<std::atomic<std::int64_t>> time_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace detail

/// The time that an event loop has read last: the host calls `tick()`, or `set()` with what it has read itself, once
/// per turn of the loop, and every check of that turn costs no reading. A handle: copies share one time, so the host
/// keeps one and gives the limiter another. Starts at the steady time of its making. Thread-safe.
class CachedClock {
public:
    static constexpr bool counts_from_boot = true;

    CachedClock() { tick(); }

    [[nodiscard]] std::chrono::microseconds now() const noexcept { return time_.load(); }

    /// Takes over the steady time.
    void tick() const noexcept { time_.store(SteadyClock{}.now()); }

    /// Takes over a time that the host has read.
    void set(std::chrono::microseconds now) const noexcept { time_.store(now); }

private:
    detail::SharedTime time_;
};

/// A clock that stands until it is moved: for tests and simulations. A handle: copies share one time, so the test keeps
/// one and gives the limiter another. Starts at zero; may go back. Thread-safe.
class ManualClock {
public:
    [[nodiscard]] std::chrono::microseconds now() const noexcept { return time_.load(); }

    void set(std::chrono::microseconds now) const noexcept { time_.store(now); }

    void advance(std::chrono::microseconds step) const noexcept { time_.add(step); }

private:
    detail::SharedTime time_;
};

/// The store's own clock: the time at which it decides. Processes that share a store need no common clock, then. The
/// clock of storages that have one; with others it does not compile. Its `now()` stands for that time and is none.
struct ServerClock {
    static constexpr bool is_the_stores = true;

    [[nodiscard]] static constexpr std::chrono::microseconds now() noexcept {
        return (std::chrono::microseconds::min)();
    }
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_CLOCK_HPP
