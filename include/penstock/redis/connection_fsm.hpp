// SPDX-License-Identifier: MIT
// ConnectionFsm: when to connect, to give up on a connection, and to try again. Pure: no socket, no clock.
#ifndef PENSTOCK_REDIS_CONNECTION_FSM_HPP
#define PENSTOCK_REDIS_CONNECTION_FSM_HPP

#include <penstock/config.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Follows one connection through its life. All times are steady microseconds. Not thread-safe.
///
/// A connection that is lost is made again at once, since most losses are a restart or an idle connection that somebody
/// cut; if that fails, after `shortest_wait`, twice that, and so on up to `longest_wait`, each less up to a half at
/// random, so that a fleet does not come back in step.
class ConnectionFsm {
public:
    struct Settings {
        std::int64_t connect_timeout = 1'000'000;  ///< for name, connection and greeting together
        std::int64_t stall_timeout = 1'000'000;    ///< with requests under way and nothing heard
        std::int64_t shortest_wait = 50'000;
        std::int64_t longest_wait = 1'000'000;
    };

    enum class Phase : std::uint8_t { waiting, connecting, greeting, ready };
    enum class Action : std::uint8_t { nothing, connect, disconnect };

    explicit ConnectionFsm(const Settings& settings) noexcept : settings_(settings) {}

    [[nodiscard]] Phase phase() const noexcept { return phase_; }

    /// Why there is no connection, while there is hope that the present attempt succeeds: none.
    [[nodiscard]] StoreError error() const noexcept { return error_; }

    /// When `tick` is to be called next.
    [[nodiscard]] std::int64_t due() const noexcept { return due_; }

    /// What to do now. `disconnect` comes with the error to report; `lost` is to be called next.
    [[nodiscard]] Action tick(std::int64_t now) noexcept {
        if (now < due_) {
            return Action::nothing;
        }
        if (phase_ == Phase::waiting) {
            phase_ = Phase::connecting;
            due_ = now + settings_.connect_timeout;
            return Action::connect;
        }
        due_ = never_due;
        return Action::disconnect;
    }

    void connected() noexcept { phase_ = Phase::greeting; }

    void greeted(std::int64_t now) noexcept {
        phase_ = Phase::ready;
        ready_since_ = now;
        error_ = StoreError::none;
        failures_ = 0;
        due_ = never_due;
    }

    /// Something was sent on a connection that is ready: an answer is expected.
    void sent(std::int64_t now) noexcept { due_ = (std::min)(due_, now + settings_.stall_timeout); }

    /// Something was heard; whether more is expected.
    void heard(std::int64_t now, bool more_expected) noexcept {
        if (phase_ == Phase::ready) {
            due_ = more_expected ? now + settings_.stall_timeout : never_due;
        }
    }

    /// The connection, or the attempt at one, is over. `random` is any 64 bits.
    void lost(std::int64_t now, StoreError error, std::uint64_t random) noexcept {
        if (phase_ == Phase::ready) {
            due_ = (std::max)(now, ready_since_ + settings_.shortest_wait);  // or one that hangs up at once is a storm
        } else {
            error_ = error;
            due_ = now + wait(random);
            ++failures_;
        }
        phase_ = Phase::waiting;
    }

private:
    static constexpr std::int64_t never_due = (std::numeric_limits<std::int64_t>::max)();

    [[nodiscard]] std::int64_t wait(std::uint64_t random) const noexcept {
        const unsigned doublings = (std::min)(failures_, 20U);
        const std::int64_t full = (std::min)(settings_.shortest_wait << doublings, settings_.longest_wait);
        return full - static_cast<std::int64_t>(random % static_cast<std::uint64_t>(full / 2 + 1));
    }

    Settings settings_;
    Phase phase_ = Phase::waiting;
    StoreError error_ = StoreError::none;
    unsigned failures_ = 0;
    std::int64_t ready_since_ = 0;
    std::int64_t due_ = 0;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_CONNECTION_FSM_HPP
