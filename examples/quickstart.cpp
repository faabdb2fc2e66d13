// SPDX-License-Identifier: MIT
// A first limiter: each client may send five requests at once, and two per second from then on.
#include <penstock/penstock.hpp>

#include "support.hpp"

#include <chrono>

namespace {

using namespace std::chrono_literals;

// When requests come in, all from one client.
constexpr std::chrono::milliseconds arrivals[] = {
    0ms,
    0ms,
    0ms,
    0ms,
    0ms,
    0ms,
    500ms,
    500ms,
    1500ms,
    1500ms,
    1500ms,
};

}  // namespace

int main() {
    // A clock that stands until it is moved, so that this prints the same at any time. A server leaves it out, and so
    // the storage before it:  penstock::Limiter limiter{penstock::TokenBucket{...}};
    penstock::ManualClock clock;
    penstock::Limiter limiter{penstock::TokenBucket{.capacity = 5, .refill = penstock::per_second(2)}, {}, clock};

    const support::Table table{"   time", "allowed", "remaining", "retry_after"};
    for (const auto time : arrivals) {
        clock.set(time);
        const penstock::Decision decision = limiter.check("user:42");
        table.row(time, decision.allowed, decision.remaining, decision.retry_after);
    }
}
