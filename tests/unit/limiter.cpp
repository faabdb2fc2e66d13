// SPDX-License-Identifier: MIT
#include <penstock/limiter.hpp>

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/hash.hpp>
#include <penstock/key.hpp>
#include <penstock/rate.hpp>

#include <doctest/doctest.h>

#include "../support/archetypes.hpp"
#include "../support/decisions.hpp"
#include "../support/ends.hpp"
#include "../support/print.hpp"
#include "../support/refusal.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::Micros;
using penstock::never;
using penstock::Op;
using penstock::per;
using penstock::per_second;
using penstock::Plan;
using penstock::Reservation;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::SteadyClock;
using penstock::StoreError;
using penstock::TokenBucket;
using std::chrono::microseconds;
using support::allowed;
using support::ends;
using support::rejected;

const LocalStorage small{{.max_keys = 100}};
constexpr TokenBucket bucket{.capacity = 5, .refill = per_second(1)};
constexpr FixedWindow window{.limit = 5, .window = 10s};

// Construction

TEST_CASE("a limiter is made of an algorithm, and a storage and a clock if need be, whose types need not be written") {
    using penstock::CoarseClock;
    CHECK(std::is_same_v<decltype(Limiter{TokenBucket{.capacity = 20, .refill = per_second(10)}}),
                         Limiter<TokenBucket, LocalStorage, SteadyClock>>);
    CHECK(std::is_same_v<decltype(Limiter{SlidingWindow{.limit = 1000, .window = 1h},
                                          LocalStorage{{.max_keys = 50'000'000}},
                                          CoarseClock{}}),
                         Limiter<SlidingWindow, LocalStorage, CoarseClock>>);
    CHECK(std::is_same_v<decltype(Limiter{AllOf{TokenBucket{.capacity = 10, .refill = per_second(10)},
                                                FixedWindow{.limit = 1000, .window = 1h}}}),
                         Limiter<AllOf<TokenBucket, FixedWindow>, LocalStorage, SteadyClock>>);
    CHECK(std::is_same_v<decltype(Limiter{bucket, LocalStorage{}}), Limiter<TokenBucket>>);
    CHECK(std::is_same_v<decltype(Limiter{bucket, small}), Limiter<TokenBucket>>);
    CHECK(std::is_same_v<decltype(Limiter(bucket)), Limiter<TokenBucket>>);
    CHECK(std::is_same_v<decltype(Limiter{support::Quota{7}, LocalStorage{}, ManualClock{}}),
                         Limiter<support::Quota, LocalStorage, ManualClock>>);
}

TEST_CASE("the first lines of the documentation work as they stand") {
    penstock::Limiter limiter{penstock::TokenBucket{.capacity = 20, .refill = penstock::per_second(10)}};
    penstock::Decision d = limiter.check("user:42");  // cost 1
    if (!d) FAIL("rejected");
    CHECK(d.remaining == 19);
}

TEST_CASE("a limiter stays where it was made, and its algorithm is no limiter") {
    CHECK_FALSE(std::is_copy_constructible_v<Limiter<TokenBucket>>);
    CHECK_FALSE(std::is_move_constructible_v<Limiter<TokenBucket>>);
    CHECK_FALSE(std::is_copy_assignable_v<Limiter<TokenBucket>>);
    CHECK_FALSE(std::is_move_assignable_v<Limiter<TokenBucket>>);
    CHECK_FALSE(std::is_convertible_v<TokenBucket, Limiter<TokenBucket>>);
}

TEST_CASE("limiters made of one storage share nothing, limiters of one clock share its time") {
    const ManualClock clock;
    Limiter first{bucket, small, clock};
    Limiter second{bucket, small, clock};
    CHECK(first.check("a", 5) == allowed(5, 0, 5s));
    CHECK(second.check("a", 5) == allowed(5, 0, 5s));
    clock.advance(5s);
    CHECK(first.check("a", 5) == allowed(5, 0, 5s));
    CHECK(second.check("a", 5) == allowed(5, 0, 5s));
}

// One key

TEST_CASE("a check takes, a peek tells what the check would have said") {
    const ManualClock clock;
    Limiter limiter{bucket, small, clock};
    CHECK(limiter.peek("a") == allowed(5, 4, 1s));
    CHECK(limiter.peek("a", 5) == allowed(5, 0, 5s));
    CHECK(limiter.peek("a", 6) == rejected(5, 5, never, 0s));
    CHECK(limiter.peek("a", 0) == allowed(5, 5, 0s));

    CHECK(limiter.check("a") == allowed(5, 4, 1s));
    CHECK(limiter.peek("a", 4) == allowed(5, 0, 5s));
    CHECK(limiter.peek("a", 5) == rejected(5, 4, 1s, 1s));
    CHECK(limiter.check("a", 4) == allowed(5, 0, 5s));
    CHECK(limiter.check("a") == rejected(5, 0, 1s, 5s));
    CHECK(limiter.check("a", 0) == allowed(5, 0, 5s));
    clock.advance(1s);
    CHECK(limiter.check("a") == allowed(5, 0, 5s));
}

TEST_CASE("each key is a client of its own, whatever its bytes") {
    const std::string long_key(std::size_t{64} * 1024, 'x');
    const std::vector<std::string> keys{"",
                                        std::string(1, '\0'),
                                        std::string(2, '\0'),
                                        "a",
                                        std::string("a\0", 2),
                                        std::string("a\0b", 3),
                                        "A",
                                        "{a}",
                                        "a:b",
                                        "gr\xc3\xbc\xc3\x9f",
                                        "\xff\xfe",
                                        long_key,
                                        long_key + "x",
                                        "y" + long_key.substr(1),
                                        long_key.substr(1) + "y"};
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 100, .refill = per_second(1)}, small, clock};
    for (std::size_t i = 0; i < keys.size(); ++i) {
        CHECK(limiter.check(keys[i], i + 1) == allowed(100, 99 - i, std::chrono::seconds{i + 1}));
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::string copy = keys[i];
        CHECK(limiter.check(copy, 0).remaining == 99 - i);
    }
}

TEST_CASE("a key may be of any type that is a string, and of joined parts") {
    Limiter limiter{bucket, small, ManualClock{}};
    const std::string owned = "tenant:42";
    CHECK(limiter.check("tenant:42").remaining == 4);
    CHECK(limiter.check(owned).remaining == 3);
    CHECK(limiter.check("tenant:42:x"sv.substr(0, 9)).remaining == 2);
    CHECK(limiter.check(penstock::Key("tenant", 42)).remaining == 1);
}

TEST_CASE("a refund gives back, a charge takes past the limit") {
    Limiter limiter{bucket, small, ManualClock{}};
    CHECK(limiter.check("a", 4) == allowed(5, 1, 4s));
    CHECK(limiter.refund("a", 3) == allowed(5, 4, 1s));
    CHECK(limiter.refund("a", 100) == allowed(5, 5, 0s));
    CHECK(limiter.charge("a", 5) == allowed(5, 0, 5s));
    CHECK(limiter.charge("a", 2) == rejected(5, 0, 2s, 7s));
    CHECK(limiter.check("a") == rejected(5, 0, 3s, 7s));
    CHECK(limiter.charge("a", 100) == rejected(5, 0, 5s, 10s));
    CHECK(limiter.charge("a", 0) == rejected(5, 0, 5s, 10s));
    CHECK(limiter.refund("a", 0) == allowed(5, 0, 10s));
    CHECK(limiter.refund("stranger", 1) == allowed(5, 5, 0s));
    CHECK(limiter.charge("stranger", 6) == rejected(5, 0, 1s, 6s));
}

TEST_CASE("a charge of a client that is blocked is kept, though its answer is a rejection") {
    const ManualClock clock;
    Limiter limiter{window, small, clock};
    CHECK(limiter.check("a", 5).allowed);
    CHECK(limiter.charge("a", 5) == rejected(5, 0, 10s, 10s));
    CHECK(limiter.refund("a", 5) == allowed(5, 0, 10s));
    CHECK(limiter.refund("a", 1) == allowed(5, 1, 10s));
}

TEST_CASE("reservations get their turn one after the other") {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 2, .refill = per_second(1)}, small, clock};
    CHECK(limiter.reserve("a", 0s, 2) == Reservation{allowed(2, 0, 2s), 0s});
    CHECK(limiter.reserve("a", 5s) == Reservation{allowed(2, 0, 3s), 1s});
    CHECK(limiter.reserve("a", 5s) == Reservation{allowed(2, 0, 4s), 2s});
    CHECK(limiter.reserve("a", 5s) == Reservation{rejected(2, 0, 3s, 4s), 0s});
    CHECK(limiter.reserve("b", 5s, 3) == Reservation{rejected(2, 2, never, 0s), 0s});
    clock.advance(1s);
    CHECK(limiter.reserve("a", 1s) == Reservation{rejected(2, 0, 2s, 3s), 0s});
    CHECK(limiter.reserve("a", 2s) == Reservation{allowed(2, 0, 4s), 2s});
    CHECK(limiter.reserve("a", 2s, 0) == Reservation{allowed(2, 0, 4s), 0s});
}

TEST_CASE("several buckets reserve together") {
    Limiter limiter{
        AllOf{TokenBucket{.capacity = 2, .refill = per_second(1)}, TokenBucket{.capacity = 9, .refill = per_second(9)}},
        small,
        ManualClock{}};
    CHECK(limiter.reserve("a", 5s, 2) == Reservation{allowed(2, 0, 2s), 0s});
    CHECK(limiter.reserve("a", 5s, 2) == Reservation{allowed(2, 0, 4s), 2s});
    CHECK(limiter.reserve("a", 5s, 1) == Reservation{rejected(2, 0, 3s, 4s), 0s});
}

TEST_CASE("a reset makes a fresh client of one key") {
    Limiter limiter{bucket, small, ManualClock{}};
    CHECK(limiter.charge("a", 10) == rejected(5, 0, 5s, 10s));
    CHECK(limiter.check("b", 5).allowed);
    limiter.reset("a");
    CHECK(limiter.check("a", 0) == allowed(5, 5, 0s));
    CHECK(limiter.check("a") == allowed(5, 4, 1s));
    CHECK(limiter.check("b") == rejected(5, 0, 1s, 5s));
    limiter.reset("stranger");
    CHECK(limiter.check("stranger") == allowed(5, 4, 1s));
}

TEST_CASE("staggered windows begin at the hash of the key") {
    const FixedWindow staggered{.limit = 5, .window = 1h, .align = penstock::Align::staggered};
    Limiter limiter{staggered, small, ManualClock{}};
    Limiter together{FixedWindow{.limit = 5, .window = 1h}, small, ManualClock{}};
    for (const std::string_view key : {"a"sv, "b"sv, "user:42"sv, ""sv}) {
        CAPTURE(key);
        const microseconds begin{static_cast<std::int64_t>(penstock::stagger_hash(key) % 3'600'000'000U)};
        CHECK(limiter.check(key) == allowed(5, 4, begin));
        CHECK(together.check(key) == allowed(5, 4, 1h));

        const Check again[] = {{.key = key}};
        Decision decision[1];
        limiter.check(again, decision);
        CHECK(decision[0] == allowed(5, 3, begin));
    }
}

// Plans and configuration

TEST_CASE("a plan given with the call decides in place of the limiter's own") {
    Limiter limiter{bucket, small, ManualClock{}};
    const Plan<TokenBucket> large = penstock::plan(TokenBucket{.capacity = 20, .refill = per_second(2)});
    CHECK(limiter.check("a", large) == allowed(20, 19, 500ms));
    CHECK(limiter.check("a", large, 9) == allowed(20, 10, 5s));
    CHECK(limiter.peek("a", large) == allowed(20, 9, 5'500ms));
    CHECK(limiter.peek("a", large, 11) == rejected(20, 10, 500ms, 5s));
    CHECK(limiter.charge("a", large, 5) == allowed(20, 5, 7'500ms));
    CHECK(limiter.refund("a", large, 3) == allowed(20, 8, 6s));
    CHECK(limiter.reserve("a", large, 0s) == Reservation{allowed(20, 7, 6'500ms), 0s});
    CHECK(limiter.reserve("a", large, 1s, 8) == Reservation{allowed(20, 0, 10'500ms), 500ms});
    CHECK(limiter.wait_for("a", large, 100ms) == rejected(20, 0, 1s, 10'500ms));
    CHECK(limiter.wait_for("a", large, 1s, 2) == rejected(20, 0, 1'500ms, 10'500ms));

    const Check checks[] = {{.key = "a"}, {.key = "b", .cost = 20}};
    Decision decisions[2];
    limiter.check(large, checks, decisions);
    CHECK(decisions[0] == rejected(20, 0, 1s, 10'500ms));
    CHECK(decisions[1] == allowed(20, 0, 10s));
}

TEST_CASE("what a client has used under one plan stays used under another") {
    Limiter limiter{bucket, small, ManualClock{}};
    const Plan<TokenBucket> large = penstock::plan(TokenBucket{.capacity = 20, .refill = per_second(1)});
    CHECK(limiter.check("a", large, 8) == allowed(20, 12, 8s));
    CHECK(limiter.check("a") == rejected(5, 0, 4s, 8s));
    CHECK(limiter.check("a", large, 12) == allowed(20, 0, 20s));
    CHECK(limiter.check("a") == rejected(5, 0, 6s, 10s));  // no client owes a plan more than twice its capacity
}

TEST_CASE("a limiter can be configured anew while its clients stay what they are") {
    const ManualClock clock;
    Limiter limiter{bucket, small, clock};
    CHECK(limiter.algorithm() == bucket);
    CHECK(limiter.check("a", 5).allowed);

    const TokenBucket larger{.capacity = 8, .refill = per_second(4)};
    limiter.configure(larger);
    CHECK(limiter.algorithm() == larger);
    CHECK(limiter.check("a", 3) == allowed(8, 0, 2s));

    limiter.configure(TokenBucket{.capacity = 6, .refill = per_second(4)});
    CHECK(limiter.check("a", 0) == allowed(6, 0, 2s));
    CHECK(limiter.check("a", 1) == rejected(6, 0, 750ms, 2s));
}

TEST_CASE("every member follows the configuration") {
    Limiter limiter{bucket, small, ManualClock{}};
    limiter.configure(TokenBucket{.capacity = 7, .refill = per_second(1)});
    const Check checks[] = {{.key = "a"}};
    Decision decisions[1];
    limiter.check(checks, decisions);
    CHECK(decisions[0].limit == 7);
    CHECK(limiter.check("a").limit == 7);
    CHECK(limiter.peek("a").limit == 7);
    CHECK(limiter.refund("a", 1).limit == 7);
    CHECK(limiter.charge("a", 1).limit == 7);
    CHECK(limiter.reserve("a", 0s).decision.limit == 7);
    CHECK(limiter.wait_for("a", 0s).limit == 7);
}

TEST_CASE("a wrong configuration changes nothing") {
    const AllOf good{bucket, window};
    Limiter limiter{good, small, ManualClock{}};
    CHECK(limiter.check("a", 3).allowed);
    const Decision before = limiter.peek("a");
    CHECK_THROWS_WITH_AS(limiter.configure(AllOf{bucket, FixedWindow{.limit = 5, .window = 0s}}),
                         "FixedWindow.window is 0 us: allowed is 1 us to 35184372088832 us",
                         std::invalid_argument);
    CHECK(limiter.algorithm() == good);
    CHECK(limiter.peek("a") == before);
}

// Batches

TEST_CASE("a batch is decided in order, so that entries of one key see each other") {
    Limiter limiter{bucket, small, ManualClock{}};
    const Check checks[] = {{.key = "a", .cost = 2},
                            {.key = "b", .cost = 5},
                            {.key = "a", .cost = 2},
                            {.key = "a", .cost = 2},
                            {.key = "b"},
                            {.key = "a", .cost = 0},
                            {.key = "c", .cost = 6},
                            {.key = "a"}};
    std::array<Decision, 8> decisions;
    limiter.check(checks, decisions);
    CHECK(decisions[0] == allowed(5, 3, 2s));
    CHECK(decisions[1] == allowed(5, 0, 5s));
    CHECK(decisions[2] == allowed(5, 1, 4s));
    CHECK(decisions[3] == rejected(5, 1, 1s, 4s));
    CHECK(decisions[4] == rejected(5, 0, 1s, 5s));
    CHECK(decisions[5] == allowed(5, 1, 4s));
    CHECK(decisions[6] == rejected(5, 5, never, 0s));
    CHECK(decisions[7] == allowed(5, 0, 5s));
}

TEST_CASE_TEMPLATE("a batch of any size decides as the same checks one by one",
                   Size,
                   std::integral_constant<std::size_t, 1>,
                   std::integral_constant<std::size_t, 31>,
                   std::integral_constant<std::size_t, 32>,
                   std::integral_constant<std::size_t, 33>,
                   std::integral_constant<std::size_t, 64>,
                   std::integral_constant<std::size_t, 1000>) {
    Limiter batched{window, small, ManualClock{}};
    Limiter single{window, small, ManualClock{}};
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < 7; ++i) {
        keys.push_back("key " + std::to_string(i));
    }
    std::vector<Check> checks;
    for (std::size_t i = 0; i < Size::value; ++i) {
        checks.push_back({.key = keys[i * i % keys.size()], .cost = i % 3});
    }
    std::vector<Decision> decisions(checks.size());
    batched.check(checks, decisions);
    for (std::size_t i = 0; i < checks.size(); ++i) {
        CAPTURE(i);
        REQUIRE(decisions[i] == single.check(checks[i].key, checks[i].cost));
    }
}

TEST_CASE("a batch ends where the shorter of its spans does") {
    Limiter limiter{bucket, small, ManualClock{}};
    const std::array<Check, 3> checks{{{.key = "a"}, {.key = "a"}, {.key = "a"}}};
    const Decision untouched{.limit = 77};
    std::array<Decision, 4> decisions{untouched, untouched, untouched, untouched};

    limiter.check(checks, std::span(decisions).first(2));
    CHECK(decisions[1] == allowed(5, 3, 2s));
    CHECK(decisions[2] == untouched);
    CHECK(limiter.peek("a").remaining == 2);

    limiter.check(std::span(checks).first(1), decisions);
    CHECK(decisions[0] == allowed(5, 2, 3s));
    CHECK(decisions[1] == allowed(5, 3, 2s));
    CHECK(decisions[2] == untouched);
}

TEST_CASE("an empty batch decides nothing") {
    Limiter limiter{bucket, small, ManualClock{}};
    const Decision untouched{.limit = 77};
    Decision decisions[] = {untouched};
    limiter.check({}, decisions);
    limiter.check(penstock::plan(bucket), {}, decisions);
    CHECK(decisions[0] == untouched);
    const Check checks[] = {{.key = "a", .cost = 5}};
    limiter.check(checks, {});
    limiter.check(std::span<const Check>{}, std::span<Decision>{});
    CHECK(limiter.check("a", 5).allowed);
}

/// Every reading is a second later.
class CountingClock {
public:
    microseconds now() const noexcept { return std::chrono::seconds{(*readings_)++}; }
    std::int64_t readings() const { return *readings_; }

private:
    std::shared_ptr<std::int64_t> readings_ = std::make_shared<std::int64_t>(0);
};

TEST_CASE("a batch is decided at one reading of the clock") {
    const CountingClock clock;
    Limiter limiter{window, small, clock};
    const std::vector<Check> checks(100, Check{.key = "a", .cost = 0});
    std::vector<Decision> decisions(checks.size());
    CHECK(limiter.check("a") == allowed(5, 4, 10s));
    limiter.check(checks, decisions);
    CHECK(clock.readings() == 2);
    CHECK(decisions.front() == allowed(5, 4, 9s));
    CHECK(decisions.back() == allowed(5, 4, 9s));
}

// Waiting

TEST_CASE("waiting for a bucket takes a turn and sleeps until it comes") {
    Limiter limiter{TokenBucket{.capacity = 1, .refill = per(1, 30ms)}, small};
    const microseconds start = SteadyClock{}.now();
    CHECK(limiter.wait_for("a", 0s).allowed);
    CHECK(limiter.wait_for("a", 10s).allowed);
    CHECK(SteadyClock{}.now() - start >= 30ms);
}

TEST_CASE("waiting longer than the caller may is refused at once, and takes nothing") {
    Limiter buckets{TokenBucket{.capacity = 5, .refill = per(1, 1min)}, small, ManualClock{}};
    Limiter windows{FixedWindow{.limit = 5, .window = 1min}, small, ManualClock{}};
    CHECK(buckets.check("a", 5).allowed);
    CHECK(windows.check("a", 5).allowed);
    const microseconds start = SteadyClock{}.now();
    for (const microseconds max_wait : {microseconds{59'999'999}, 0us, -1us}) {
        CAPTURE(max_wait);
        CHECK(buckets.wait_for("a", max_wait) == rejected(5, 0, 1min, 5min));
        CHECK(windows.wait_for("a", max_wait) == rejected(5, 0, 1min, 1min));
    }
    CHECK(SteadyClock{}.now() - start < 50s);
}

TEST_CASE("what may pass at once does not wait") {
    Limiter buckets{bucket, small, ManualClock{}};
    Limiter windows{window, small, ManualClock{}};
    CHECK(buckets.wait_for("a", 1h, 5) == allowed(5, 0, 5s));
    CHECK(buckets.wait_for("a", 1h, 0) == allowed(5, 0, 5s));
    CHECK(windows.wait_for("a", 1h, 5) == allowed(5, 0, 10s));
    CHECK(windows.wait_for("a", 1h, 0) == allowed(5, 0, 10s));
}

TEST_CASE("waiting for a window sleeps until it has room, and then takes") {
    Limiter limiter{FixedWindow{.limit = 1, .window = 40ms}, small};
    while (!limiter.check("a").allowed) {
    }
    const microseconds start = SteadyClock{}.now();
    const microseconds wait = limiter.peek("a").retry_after;
    CHECK(limiter.wait_for("a", 10s).allowed);
    CHECK(SteadyClock{}.now() - start >= wait);
}

TEST_CASE("waiting for a window ends by real time though the limiter's clock stands") {
    Limiter limiter{FixedWindow{.limit = 1, .window = 20ms}, small, ManualClock{}};
    CHECK(limiter.check("a").allowed);
    const microseconds start = SteadyClock{}.now();
    CHECK(limiter.wait_for("a", 50ms) == rejected(1, 0, 20ms, 20ms));
    CHECK(SteadyClock{}.now() - start >= 20ms);
}

TEST_CASE("nobody waits for what can never pass, however long the caller may") {
    // Many times, since a clock that shows the same microsecond twice is what makes the difference.
    const auto buckets = std::make_shared<Limiter<TokenBucket>>(bucket, small);
    const auto windows = std::make_shared<Limiter<FixedWindow>>(window, small);
    CHECK(ends([buckets] {
        for (int i = 0; i < 1000; ++i) {
            (void)buckets->wait_for("a", never, 6);
        }
    }));
    CHECK(ends([windows] {
        for (int i = 0; i < 1000; ++i) {
            (void)windows->wait_for("a", never, 6);
        }
    }));
    CHECK(buckets->wait_for("b", never - 1us, 6) == rejected(5, 5, never, 0s));
}

TEST_CASE("the shortest wait there is is no long one") {
    const auto windows = std::make_shared<Limiter<FixedWindow, LocalStorage, ManualClock>>(window, small);
    CHECK(windows->check("a", 5).allowed);
    CHECK(ends([windows] {
        for (int i = 0; i < 1000; ++i) {
            (void)windows->wait_for("a", (microseconds::min)());
        }
    }));
}

// Clocks

TEST_CASE("a clock needs to have no more than now()") {
    Limiter<TokenBucket, LocalStorage, support::StoppedClock> limiter{bucket, small, support::StoppedClock{7s}};
    CHECK(limiter.check("a", 5) == allowed(5, 0, 5s));
    CHECK(limiter.check("a") == rejected(5, 0, 1s, 5s));
    CHECK(limiter.wait_for("a", 0s) == rejected(5, 0, 1s, 5s));
}

TEST_CASE("times before the epoch count as the epoch, times beyond 2^53 us as the last before") {
    const support::DoorStorage door("a");
    const auto time_given = [&](microseconds now) {
        Limiter<TokenBucket, support::DoorStorage, support::StoppedClock> limiter{
            bucket, door, support::StoppedClock{now}};
        return limiter.check("a").reset_after;
    };
    CHECK(time_given((microseconds::min)()) == 0us);
    CHECK(time_given(-1us) == 0us);
    CHECK(time_given(0us) == 0us);
    CHECK(time_given(1us) == 1us);
    CHECK(time_given(support::last_moment) == support::last_moment);
    CHECK(time_given(support::last_moment + 1us) == support::last_moment);
    CHECK(time_given((microseconds::max)()) == support::last_moment);
}

TEST_CASE_TEMPLATE("a clock gone mad mints nothing and blocks nobody longer than the way back",
                   Algorithm,
                   TokenBucket,
                   FixedWindow) {
    const ManualClock clock;
    Algorithm algorithm;
    if constexpr (std::is_same_v<Algorithm, TokenBucket>) {
        algorithm = {.capacity = 5, .refill = per(5, 10s)};
    } else {
        algorithm = {.limit = 5, .window = 10s};
    }
    Limiter limiter{algorithm, small, clock};
    clock.set((microseconds::min)());
    CHECK(limiter.check("a", 5) == allowed(5, 0, 10s));
    clock.set(-1h);
    CHECK_FALSE(limiter.check("a").allowed);
    clock.set(10s);
    CHECK(limiter.check("a", 5) == allowed(5, 0, 10s));
    clock.set((microseconds::max)());
    CHECK(limiter.check("a", 5).allowed);
    CHECK_FALSE(limiter.check("a", 5).allowed);
    clock.set(10s);
    const Decision back = limiter.check("a", 5);
    CHECK_FALSE(back.allowed);
    CHECK(back.retry_after > support::last_moment - 10s);
    CHECK(back.retry_after <= support::last_moment);
}

// Storages

TEST_CASE("a storage needs to have no more than what it is bound to, and that no more than apply") {
    const support::DoorStorage door("a");
    Limiter<TokenBucket, support::DoorStorage, support::StoppedClock> limiter{bucket, door, support::StoppedClock{3us}};
    const Decision yes{.allowed = true, .limit = 1, .reset_after = 3us};
    const Decision no{.allowed = false, .limit = 1, .reset_after = 3us};
    CHECK(limiter.check("a") == yes);
    CHECK(limiter.check("b") == no);
    CHECK(limiter.peek("a") == yes);
    CHECK(limiter.refund("a", 1) == yes);
    CHECK(limiter.charge("a", 1) == yes);
    CHECK(limiter.reserve("a", 9us) == Reservation{yes, 9us});
    CHECK(limiter.reserve("b", 9us).wait == 0us);
    CHECK(limiter.wait_for("a", 9us) == yes);
    limiter.reset("a");

    const Check checks[] = {{.key = "a", .cost = 7}, {.key = "b", .cost = 8}};
    Decision decisions[2];
    limiter.check(checks, decisions);
    CHECK(decisions[0] == Decision{.allowed = true, .limit = 7, .reset_after = 3us});
    CHECK(decisions[1] == Decision{.allowed = false, .limit = 8, .reset_after = 3us});
}

/// Writes down what it and its clock are asked, in order.
class Diary {
public:
    void write(std::string line) const { lines_->push_back(std::move(line)); }
    std::vector<std::string> take() const { return std::exchange(*lines_, {}); }

private:
    std::shared_ptr<std::vector<std::string>> lines_ = std::make_shared<std::vector<std::string>>();
};

struct DiaryClock {
    Diary diary;

    microseconds now() const noexcept {
        diary.write("clock");
        return 7us;
    }
};

struct DiaryStorage {
    Diary diary;

    using DefaultClock = DiaryClock;

    template <class Algorithm>
    struct Bound {
        Diary diary;

        explicit Bound(const DiaryStorage& storage) : diary(storage.diary) {}

        struct Location {
            std::string_view key;
        };

        Location locate(std::string_view key) const noexcept {
            diary.write("locate " + std::string(key));
            return {key};
        }

        StoreError apply(Op op,
                         Location location,
                         const Plan<Algorithm>& plan,
                         Micros now,
                         std::uint64_t cost,
                         microseconds max_wait,
                         Decision& decision) noexcept {
            constexpr std::array names{"check", "peek", "refund", "charge", "reserve", "reset"};
            diary.write(std::string(names[static_cast<std::size_t>(op)]) + ' ' + std::string(location.key) + " limit " +
                        std::to_string(plan.algorithm().capacity) + " now " + std::to_string(now) + " cost " +
                        std::to_string(cost) + " wait " + std::to_string(max_wait.count()));
            decision = {.allowed = true};
            return StoreError::none;
        }

        StoreError apply(Op op,
                         std::string_view key,
                         const Plan<Algorithm>& plan,
                         Micros now,
                         std::uint64_t cost,
                         microseconds max_wait,
                         Decision& decision) noexcept {
            return apply(op, locate(key), plan, now, cost, max_wait, decision);
        }
    };
};

using Lines = std::vector<std::string>;

TEST_CASE("a storage is asked for what the caller wants, with the plan and the time that count") {
    const Diary diary;
    Limiter limiter{bucket, DiaryStorage{diary}, DiaryClock{diary}};
    const Plan<TokenBucket> plan = penstock::plan(TokenBucket{.capacity = 9, .refill = per_second(1)});
    const auto last = [&] { return diary.take().back(); };
    CHECK(limiter.check("a").allowed);
    CHECK(last() == "check a limit 5 now 7 cost 1 wait 0");
    CHECK(limiter.check("a", plan, 2).allowed);
    CHECK(last() == "check a limit 9 now 7 cost 2 wait 0");
    CHECK(limiter.peek("a", 3).allowed);
    CHECK(last() == "peek a limit 5 now 7 cost 3 wait 0");
    CHECK(limiter.peek("a", plan, 3).allowed);
    CHECK(last() == "peek a limit 9 now 7 cost 3 wait 0");
    CHECK(limiter.refund("a", 3).allowed);
    CHECK(last() == "refund a limit 5 now 7 cost 3 wait 0");
    CHECK(limiter.refund("a", plan, 3).allowed);
    CHECK(last() == "refund a limit 9 now 7 cost 3 wait 0");
    CHECK(limiter.charge("a", 3).allowed);
    CHECK(last() == "charge a limit 5 now 7 cost 3 wait 0");
    CHECK(limiter.charge("a", plan, 3).allowed);
    CHECK(last() == "charge a limit 9 now 7 cost 3 wait 0");
    CHECK(limiter.reserve("a", 4us, 3).decision.allowed);
    CHECK(last() == "reserve a limit 5 now 7 cost 3 wait 4");
    CHECK(limiter.reserve("a", plan, 4us, 3).decision.allowed);
    CHECK(last() == "reserve a limit 9 now 7 cost 3 wait 4");
    CHECK(limiter.wait_for("a", 4us, 3).allowed);
    CHECK(last() == "reserve a limit 5 now 7 cost 3 wait 4");
    CHECK(limiter.wait_for("a", plan, 4us, 3).allowed);
    CHECK(last() == "reserve a limit 9 now 7 cost 3 wait 4");
    limiter.reset("a");
    CHECK(last().starts_with("reset a "));
}

TEST_CASE("a storage that can looks a key up before the clock is read") {
    const Diary diary;
    Limiter limiter{bucket, DiaryStorage{diary}, DiaryClock{diary}};
    CHECK(limiter.check("a").allowed);
    CHECK(diary.take() == Lines{"locate a", "clock", "check a limit 5 now 7 cost 1 wait 0"});

    const Check checks[] = {{.key = "a"}, {.key = "b", .cost = 2}};
    Decision decisions[2];
    limiter.check(checks, decisions);
    CHECK(diary.take() == Lines{"locate a",
                                "locate b",
                                "clock",
                                "check a limit 5 now 7 cost 1 wait 0",
                                "check b limit 5 now 7 cost 2 wait 0"});
}

TEST_CASE("a storage that brings a clock of its own gives it to a limiter that was given none") {
    CHECK(std::is_same_v<decltype(Limiter{bucket, DiaryStorage{}}), Limiter<TokenBucket, DiaryStorage, DiaryClock>>);
    CHECK(std::is_same_v<Limiter<TokenBucket, DiaryStorage>, Limiter<TokenBucket, DiaryStorage, DiaryClock>>);
}

/// Cannot be reached, and leaves something behind where the decision would be.
struct FailingStorage {
    template <class Algorithm>
    struct Bound {
        explicit Bound(const FailingStorage&) {}

        StoreError apply(Op,
                         std::string_view,
                         const Plan<Algorithm>&,
                         Micros,
                         std::uint64_t,
                         microseconds,
                         Decision& decision) noexcept {
            decision = {.allowed = false, .limit = 9, .retry_after = 1h, .reset_after = 1h};
            return StoreError::unavailable;
        }
    };
};

TEST_CASE_TEMPLATE("a storage that fails stops nobody, and the decision says so", Algorithm, TokenBucket, FixedWindow) {
    const Decision open{.allowed = true, .source = Source::fail_open};
    Algorithm algorithm;
    if constexpr (std::is_same_v<Algorithm, TokenBucket>) {
        algorithm = bucket;
    } else {
        algorithm = window;
    }
    Limiter limiter{algorithm, FailingStorage{}, ManualClock{}};
    const Plan<Algorithm> plan = penstock::plan(algorithm);
    CHECK(limiter.check("a") == open);
    CHECK(limiter.check("a", plan, 100) == open);
    CHECK(limiter.peek("a") == open);
    CHECK(limiter.refund("a", 1) == open);
    CHECK(limiter.charge("a", 1) == open);
    CHECK(limiter.wait_for("a", 1h) == open);
    if constexpr (penstock::Reservable<Algorithm>) {
        CHECK(limiter.reserve("a", 1h) == Reservation{open, 0us});
    }
    limiter.reset("a");

    const Check checks[] = {{.key = "a"}, {.key = "b", .cost = 2}};
    Decision decisions[2];
    limiter.check(checks, decisions);
    CHECK(decisions[0] == open);
    CHECK(decisions[1] == open);
}

TEST_CASE("the storage bound to a limiter can be asked for its own counters") {
    const Limiter limiter{bucket, small, ManualClock{}};
    CHECK(limiter.storage().evictions() == 0);
    CHECK(limiter.storage().slots() >= 100);
}

// Algorithms of the user's own

TEST_CASE("an algorithm needs to have no more than a State and a step") {
    const ManualClock clock;
    Limiter limiter{support::Quota{.units = 3}, small, clock};
    CHECK(limiter.algorithm().units == 3);
    CHECK(limiter.peek("a", 4) == rejected(3, 3, never, 0s));
    CHECK(limiter.check("a", 2) == allowed(3, 1, never));
    CHECK(limiter.peek("a") == allowed(3, 0, never));
    CHECK(limiter.wait_for("a", 1h, 2) == rejected(3, 1, never, never));
    CHECK(limiter.check("a", penstock::plan(support::Quota{.units = 9}), 2) == allowed(9, 5, never));

    const Check checks[] = {{.key = "a"}, {.key = "b"}, {.key = "b", .cost = 3}};
    Decision decisions[3];
    limiter.check(checks, decisions);
    CHECK(decisions[0] == rejected(3, 0, never, never));
    CHECK(decisions[1] == allowed(3, 2, never));
    CHECK(decisions[2] == rejected(3, 2, never, never));

    limiter.reset("a");
    CHECK(limiter.check("a", 3) == allowed(3, 0, never));
    limiter.configure(support::Quota{.units = 4});
    CHECK(limiter.check("a") == allowed(4, 0, never));
}

TEST_CASE("a state that is never as good as fresh is kept for good, and whatever the clock does") {
    const ManualClock clock;
    Limiter limiter{support::Quota{.units = 3}, small, clock};
    for (const microseconds now : {microseconds{5s}, microseconds{0s}, support::last_moment, (microseconds::min)()}) {
        clock.set(now);
        CHECK(limiter.check("a").allowed == (now != (microseconds::min)()));
    }
    clock.set((microseconds::max)());
    CHECK(limiter.check("a", 0) == allowed(3, 0, never));
}

}  // namespace
