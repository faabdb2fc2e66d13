// SPDX-License-Identifier: MIT
// RefreshFsm: when to ask a cluster for its slots. Pure: no socket, no clock.
#ifndef PENSTOCK_REDIS_REFRESH_FSM_HPP
#define PENSTOCK_REDIS_REFRESH_FSM_HPP

#include <penstock/config.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// All times are steady microseconds. Not thread-safe.
///
/// Whatever looks like a change of the cluster makes it ask, at most once in `interval`; while a node is gone and no
/// other has its slots yet, again and again, ever more rarely, up to `longest_interval`.
class RefreshFsm {
public:
    static constexpr std::int64_t interval = 100'000;
    static constexpr std::int64_t longest_interval = 1'600'000;

    /// Something was seen that the map does not say: a redirection, a lost node, a slot of nobody.
    void doubt() noexcept { doubted_ = true; }

    /// Whether to ask now. If a node can be asked, `asked` is to be called.
    [[nodiscard]] bool wants_to_ask(std::int64_t now) const noexcept { return due() <= now; }

    /// When it will want to.
    [[nodiscard]] std::int64_t due() const noexcept {
        return doubted_ && !asking_ ? not_before_ : (std::numeric_limits<std::int64_t>::max)();
    }

    void asked(std::int64_t now) noexcept {
        asking_ = true;
        doubted_ = false;
        not_before_ = now + interval_;
    }

    /// An answer has come; whether it left no doubt.
    void answered(bool complete) noexcept {
        asking_ = false;
        doubted_ = doubted_ || !complete;
        interval_ = complete ? interval : (std::min)(2 * interval_, longest_interval);
    }

    /// None will come: the connection is gone.
    void failed() noexcept { answered(false); }

private:
    bool doubted_ = true;  // nothing is known yet
    bool asking_ = false;
    std::int64_t interval_ = interval;
    std::int64_t not_before_ = 0;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_REFRESH_FSM_HPP
