// SPDX-License-Identifier: MIT
// Throttling in an event loop: requests beyond the rate are held until their turn, in order, and nobody polls.
#include <penstock/penstock.hpp>

#include "support.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

/// Runs what is due, the earliest first. Here time leaps to the next timer; a loop that waits for real sleeps until
/// then and calls `tick()` on a penstock::CachedClock, once per turn.
class EventLoop {
public:
    [[nodiscard]] const penstock::ManualClock& clock() const { return clock_; }

    void after(std::chrono::microseconds delay, std::function<void()> action) {
        timers_.push({clock_.now() + delay, made_++, std::move(action)});
    }

    void run() {
        while (!timers_.empty()) {
            const Timer next = timers_.top();
            timers_.pop();
            clock_.set(next.due);
            next.action();
        }
    }

private:
    struct Timer {
        std::chrono::microseconds due;
        std::uint64_t number;  // of two that are due together, the one made first
        std::function<void()> action;

        bool operator<(const Timer& other) const {
            return std::pair(other.due, other.number) < std::pair(due, number);  // a queue's top is its greatest
        }
    };

    penstock::ManualClock clock_;
    std::priority_queue<Timer> timers_;
    std::uint64_t made_ = 0;
};

}  // namespace

int main() {
    EventLoop loop;
    penstock::Limiter limiter{
        penstock::TokenBucket{.capacity = 4, .refill = penstock::per_second(4)}, {}, loop.clock()};

    const support::Table table{"   time", "request", "what happens                     "};
    const auto note = [&](char request, const std::string& what) {
        table.row(loop.clock().now(), std::string(1, request), what);
    };

    const auto arrive = [&](char request) {
        const penstock::Reservation turn = limiter.reserve("user:42", 750ms);
        if (!turn) {
            note(request, "rejected, to come back in " + support::text(turn.decision.retry_after));
        } else if (turn.wait == 0ms) {
            note(request, "runs at once");
        } else {
            note(request, "held for " + support::text(turn.wait));
            loop.after(turn.wait, [=] { note(request, "runs"); });
        }
    };

    // Eight requests at once: four pass, three wait their turn, and for the last that would take too long. Two more
    // come while others are held, and wait behind them.
    for (const char request : {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}) {
        loop.after(0ms, [=] { arrive(request); });
    }
    for (const char request : {'i', 'j'}) {
        loop.after(600ms, [=] { arrive(request); });
    }
    loop.run();
}
