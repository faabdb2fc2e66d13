// SPDX-License-Identifier: MIT
// An algorithm of one's own: a few attempts, then a lockout, as a login needs it against guessed passwords.
#include <penstock/penstock.hpp>

#include "support.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::Micros;

/// Admits `attempts`; all are forgotten when none was admitted for as long as `lockout`.
struct Strikes {
    std::uint64_t attempts = 0;
    std::chrono::microseconds lockout{0};

    /// What is remembered of a client; all zero is a fresh one.
    struct State {
        std::uint64_t used;
        Micros last;
    };

    using Plan = penstock::Plan<Strikes>;  // the parameters above, after validate()

    void validate() const {
        if (attempts < 1) throw std::invalid_argument("Strikes.attempts is 0: allowed is 1 or more");
        if (lockout < 1us || lockout > 8760h) {
            const std::string us = std::to_string(lockout.count());
            throw std::invalid_argument("Strikes.lockout is " + us + " us: allowed is 1 us to 8760 h");
        }
    }

    static Decision step(State& state, const Plan& plan, Micros now, std::uint64_t cost, Micros) noexcept {
        State then = at(now, state, plan);
        if (cost == 0) return decide(true, 0us, then, plan, now);
        if (cost > plan.attempts) return decide(false, penstock::never, then, plan, now);
        if (then.used > plan.attempts - cost) return decide(false, until_forgotten(then, plan, now), then, plan, now);
        state = then = {then.used + cost, (std::max)(now, then.last)};
        return decide(true, 0us, then, plan, now);
    }

    /// Optional. For attempts that were no fault of the client's.
    static Decision refund(State& state, const Plan& plan, Micros now, std::uint64_t cost, Micros) noexcept {
        State then = at(now, state, plan);
        if (cost > 0 && then.used > 0) state = then = {then.used - (std::min)(cost, then.used), then.last};
        return decide(true, 0us, then, plan, now);
    }

private:
    static State at(Micros now, const State& state, const Plan& plan) noexcept {
        const bool forgotten = now >= state.last + static_cast<Micros>(plan.lockout.count());
        return forgotten ? State{0, state.last} : state;
    }

    // Counted from now, even if that is before `last`: a clock that goes back shortens no lockout.
    static std::chrono::microseconds until_forgotten(const State& state, const Plan& plan, Micros now) noexcept {
        if (state.used == 0) return 0us;
        return plan.lockout + std::chrono::microseconds(state.last) - std::chrono::microseconds(now);
    }

    static Decision decide(bool allowed,
                           std::chrono::microseconds retry_after,
                           const State& state,
                           const Plan& plan,
                           Micros now) noexcept {
        return {.allowed = allowed,
                .limit = plan.attempts,
                .remaining = plan.attempts - (std::min)(state.used, plan.attempts),
                .retry_after = retry_after,
                .reset_after = until_forgotten(state, plan, now)};
    }
};

static_assert(penstock::Algorithm<Strikes> && penstock::Refundable<Strikes>);

}  // namespace

int main() {
    const penstock::ManualClock clock;
    penstock::Limiter limiter{Strikes{.attempts = 3, .lockout = 15min}, {}, clock};

    const support::Table table{"        time", "password     ", "tried", "remaining", "retry_after"};
    const auto login = [&](std::chrono::microseconds time, std::string_view password) {
        clock.set(time);
        Decision decision = limiter.check("alice");
        if (decision && password == "right") limiter.reset("alice");
        if (decision && password == "database down") decision = limiter.refund("alice", 1);
        table.row(time, password, decision.allowed, decision.remaining, decision.retry_after);
    };

    login(0s, "wrong");
    login(10s, "wrong");
    login(20s, "database down");  // her attempt is given back
    login(30s, "wrong");
    login(40s, "right");  // too late: it is not even tried
    login(930s - 1us, "right");
    login(930s, "right");  // and all is forgotten
    login(940s, "wrong");
}
