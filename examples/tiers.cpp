// SPDX-License-Identifier: MIT
// Plans per call: free and paying clients share one limiter, and what was used stays used when a client changes tier.
#include <penstock/penstock.hpp>

#include "support.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace {

using namespace std::chrono_literals;

// A plan is parameters, checked once. As these are constexpr, wrong ones would not even compile; a server that reads
// them from a file makes them at run time, with the same call.
using Tier = penstock::Plan<penstock::TokenBucket>;
constexpr Tier free_tier = penstock::plan(penstock::TokenBucket{.capacity = 5, .refill = penstock::per_second(1)});
constexpr Tier pro_tier = penstock::plan(penstock::TokenBucket{.capacity = 20, .refill = penstock::per_second(10)});

struct Client {
    std::string_view name;
    const Tier* tier;
};

/// An API with one limiter for all of its clients.
class Api {
public:
    explicit Api(const penstock::ManualClock& clock) : limiter_(free_tier.algorithm(), {}, clock), clock_(clock) {}

    /// Sends some requests at once; prints how many passed, and what the last one was told.
    void send(const Client& client, int requests) {
        std::uint64_t passed = 0;
        penstock::Decision decision;
        for (int i = 0; i < requests; ++i) {
            decision = limiter_.check(client.name, *client.tier);
            passed += decision.allowed ? 1 : 0;
        }
        table_.row(clock_.now(),
                   client.name,
                   client.tier == &pro_tier ? "pro" : "free",
                   static_cast<std::uint64_t>(requests),
                   passed,
                   decision.limit,
                   decision.remaining,
                   decision.retry_after);
    }

private:
    penstock::Limiter<penstock::TokenBucket, penstock::LocalStorage, penstock::ManualClock> limiter_;
    penstock::ManualClock clock_;
    support::Table table_{"   time", "client ", "tier ", "sent", "passed", "limit", "remaining", "retry_after"};
};

}  // namespace

int main() {
    const penstock::ManualClock clock;
    Api api{clock};
    Client alice{"alice", &free_tier};
    Client bob{"bob", &pro_tier};

    api.send(alice, 6);  // one too many for her tier
    api.send(bob, 6);

    alice.tier = &pro_tier;  // pays, and may go on at once; the five that she used are still counted
    bob.tier = &free_tier;   // stops paying; the six that he used are one more than he may have now
    api.send(alice, 1);
    api.send(bob, 1);

    clock.set(2s);
    api.send(alice, 1);  // long full again, at ten per second
    api.send(bob, 1);    // just admitted, as he was told
}
