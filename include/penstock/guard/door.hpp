// SPDX-License-Identifier: MIT
// Door: lets late handlers in for as long as what they want to use is there.
#ifndef PENSTOCK_GUARD_DOOR_HPP
#define PENSTOCK_GUARD_DOOR_HPP

#include <penstock/config.hpp>
#include <penstock/detail/threads.hpp>

#include <atomic>
#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Keeps those out who come after its owner has gone, who waits for those who are in. Thread-safe.
class Door {
public:
    /// False if it is closed; otherwise `leave` must follow.
    [[nodiscard]] bool enter() noexcept {
        if ((inside_.fetch_add(1, std::memory_order_acquire) & closed) == 0) {
            return true;
        }
        leave();
        return false;
    }

    void leave() noexcept { inside_.fetch_sub(1, std::memory_order_release); }

    /// Returns when nobody is in. Not for those who are.
    void close() noexcept {
        inside_.fetch_or(closed, std::memory_order_acq_rel);
        for (unsigned attempts = 0; inside_.load(std::memory_order_acquire) != closed; ++attempts) {
            Threads::pause(attempts);
        }
    }

private:
    static constexpr std::uint32_t closed = std::uint32_t{1} << 31;

    std::atomic<std::uint32_t> inside_{0};
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_DOOR_HPP
