// SPDX-License-Identifier: MIT
// What a user may write: every spelling of construction and call, also with the least that the concepts ask for.
#include <penstock/penstock.hpp>

#include "../support/archetypes.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;
using penstock::per_second;

constexpr penstock::TokenBucket bucket{.capacity = 20, .refill = per_second(10)};

template <class Limiter>
bool call(Limiter& limiter) {
    const auto plan = penstock::plan(limiter.algorithm());
    const std::string text = "user:42";
    bool allowed = limiter.check("user:42").allowed;
    allowed &= limiter.check(text, 2).allowed;
    allowed &= limiter.check(std::string_view(text), plan).allowed;
    allowed &= limiter.check(penstock::Key("tenant", 42, text), plan, 2).allowed;
    allowed &= limiter.peek(text).allowed && limiter.peek(text, plan, 2).allowed;
    allowed &= limiter.wait_for(text, 1ms).allowed && limiter.wait_for(text, plan, 1s, 2).allowed;

    const std::array<penstock::Check, 2> checks{{{.key = text}, {.key = "b", .cost = 3}}};
    std::array<penstock::Decision, 2> decisions;
    limiter.check(checks, decisions);
    limiter.check(plan, checks, decisions);
    if (penstock::Decision decision = limiter.check(text); !decision) return decision.retry_after == penstock::never;

    limiter.reset(text);
    limiter.configure(limiter.algorithm());
    return allowed;
}

template <class Limiter>
bool call_more(Limiter& limiter) {
    const auto plan = penstock::plan(limiter.algorithm());
    return call(limiter) && limiter.refund("a", 1) && limiter.refund("a", plan, 1) && limiter.charge("a", 1) &&
           limiter.charge("a", plan, 1);
}

}  // namespace

int main() {
    penstock::Limiter one{bucket};
    penstock::Limiter big{penstock::SlidingWindow{.limit = 1000, .window = 1h},
                          penstock::LocalStorage{{.max_keys = 1000}},
                          penstock::CoarseClock{}};
    penstock::Limiter daily{penstock::FixedWindow{.limit = 9, .window = 24h, .align = penstock::Align::staggered},
                            penstock::LocalStorage{},
                            penstock::SystemClock{}};
    penstock::Limiter both{penstock::AllOf{bucket, penstock::FixedWindow{.limit = 1000, .window = 1h}}};
    penstock::Limiter pair{penstock::AllOf{bucket, bucket}, penstock::LocalStorage{}, penstock::ManualClock{}};
    penstock::Limiter own{support::Quota{.units = 5}};

    const support::DoorStorage door("user:42");
    const support::StoppedClock noon(12h);
    using Least = penstock::Limiter<support::Quota, support::DoorStorage, support::StoppedClock>;
    Least least{support::Quota{.units = 5}, door, noon};

    const bool more = call_more(one) && call_more(big) && call_more(daily) && call_more(both);
    const penstock::Reservation reservation = pair.reserve("a", 1s);
    return more && call(own) && call(least) && reservation.decision ? 0 : 1;
}
