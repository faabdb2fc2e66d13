// SPDX-License-Identifier: MIT
// Several limits at once: a burst limit and an hourly quota on each client, decided in one step, all or nothing.
#include <penstock/penstock.hpp>

#include "support.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace {

using namespace std::chrono_literals;

constexpr penstock::TokenBucket burst{.capacity = 10, .refill = penstock::per_second(10)};
constexpr penstock::FixedWindow quota{.limit = 25, .window = 1h};

/// A decision shows the limit of the part that decided.
std::string_view name_of(const penstock::Decision& decision) {
    return decision.limit == burst.capacity ? "burst" : "quota";
}

}  // namespace

int main() {
    const penstock::ManualClock clock;
    penstock::Limiter limiter{penstock::AllOf{burst, quota}, {}, clock};

    const support::Table table{"     time", "sent", "passed", "decided by", "limit", "remaining", "retry_after"};
    const auto send = [&](std::chrono::microseconds time, std::uint64_t requests) {
        clock.set(time);
        std::uint64_t passed = 0;
        penstock::Decision decision;
        for (std::uint64_t i = 0; i < requests; ++i) {
            decision = limiter.check("user:42");
            passed += decision.allowed ? 1 : 0;
        }
        table.row(time, requests, passed, name_of(decision), decision.limit, decision.remaining, decision.retry_after);
    };

    // The burst limit rejects all but ten of the first hundred. These ninety take nothing from the quota: a second
    // later ten more pass, and then the five that are left in this hour.
    send(0s, 100);
    send(1s, 100);
    send(2s, 5);
    send(2s, 1);

    // The quota rejects, and a hundred tries take nothing from the burst limit: as the hour ends, all ten pass at once.
    send(1h - 100ms, 100);
    send(1h, 10);
    send(1h, 1);
}
