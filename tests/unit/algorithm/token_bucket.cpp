// SPDX-License-Identifier: MIT
#include <penstock/algorithm/token_bucket.hpp>

#include <doctest/doctest.h>

#include "../../support/client.hpp"
#include "../../support/decisions.hpp"
#include "../../support/print.hpp"
#include "../../support/refusal.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace {

using namespace std::chrono_literals;
using penstock::never;
using penstock::per;
using penstock::per_hour;
using penstock::per_second;
using penstock::TokenBucket;
using support::allowed;
using support::largest_limit;
using support::last_moment;
using support::longest_period;
using support::one_us;
using support::refusal;
using support::rejected;
using support::same_bits;
using Client = support::Client<TokenBucket>;

constexpr std::uint64_t largest_cost = (std::numeric_limits<std::uint64_t>::max)();

constexpr std::array<bool, 11> reference_vector() {
    Client client(TokenBucket{.capacity = 5, .refill = per_second(2)});
    std::array<bool, 11> admitted{};
    std::size_t next = 0;
    const auto check = [&](int times, std::chrono::microseconds now) {
        for (int i = 0; i < times; ++i) {
            admitted[next++] = client.check(now).allowed;
        }
    };
    check(6, 0ms);
    check(2, 500ms);
    check(3, 1500ms);
    return admitted;
}

TEST_CASE("a bucket of 5 with 2 per second admits as the reference vector says, at compile time") {
    constexpr bool t = true;
    constexpr bool f = false;
    constexpr std::array<bool, 11> expected{t, t, t, t, t, f, t, f, t, t, f};
    static_assert(reference_vector() == expected);
    CHECK(reference_vector() == expected);
}

TEST_CASE("a bucket starts full, and gives all of it at once") {
    Client client(TokenBucket{.capacity = 5, .refill = per_second(2)});
    CHECK(client.check(7s, 0) == allowed(5, 5, 0us));
    CHECK(client.check(7s, 1) == allowed(5, 4, 500ms));
    CHECK(client.check(7s, 4) == allowed(5, 0, 2500ms));
    CHECK(client.check(7s, 1) == rejected(5, 0, 500ms, 2500ms));
    CHECK(client.check(7s, 5) == rejected(5, 0, 2500ms, 2500ms));
}

TEST_CASE("a token comes back on the very microsecond, whatever the fraction") {
    Client client(TokenBucket{.capacity = 1, .refill = per(10, 13s)});
    CHECK(client.check(0us) == allowed(1, 0, 1'300ms));
    CHECK(client.check(0us) == rejected(1, 0, 1'300ms, 1'300ms));
    CHECK(client.check(1'299'999us) == rejected(1, 0, 1us, 1us));
    CHECK(client.check(1'300'000us) == allowed(1, 0, 1'300ms));
}

TEST_CASE("a wait of a fraction of a microsecond is rounded up") {
    Client thirds(TokenBucket{.capacity = 3, .refill = per(3, 1us)});
    CHECK(thirds.check(0us, 3) == allowed(3, 0, 1us));
    CHECK(thirds.check(0us, 1) == rejected(3, 0, 1us, 1us));

    Client sevenths(TokenBucket{.capacity = 1, .refill = per(7, 1s)});
    CHECK(sevenths.check(0us) == allowed(1, 0, 142'858us));
    CHECK(sevenths.check(142'857us) == rejected(1, 0, 1us, 1us));
    CHECK(sevenths.check(142'858us) == allowed(1, 0, 142'858us));
}

TEST_CASE("the fraction of a token that has come back is not lost when another is taken") {
    Client client(TokenBucket{.capacity = 2, .refill = per_second(1)});
    CHECK(client.check(0s, 2) == allowed(2, 0, 2s));
    CHECK(client.check(1'600ms, 1) == allowed(2, 0, 1'400ms));
    CHECK(client.check(1'600ms, 1) == rejected(2, 0, 400ms, 1'400ms));
    CHECK(client.check(2s, 1) == allowed(2, 0, 2s));
}

TEST_CASE("a full bucket collects nothing") {
    Client client(TokenBucket{.capacity = 1, .refill = per_second(1)});
    CHECK(client.check(0s) == allowed(1, 0, 1s));
    CHECK(client.check(1'900ms) == allowed(1, 0, 1s));
    CHECK(client.check(2s) == rejected(1, 0, 900ms, 900ms));
}

TEST_CASE("a bucket left alone for ages is full, and no more") {
    Client client(TokenBucket{.capacity = 9'999'999, .refill = per_second(9'999'999)});
    CHECK(client.check(0s, 9'999'999) == allowed(9'999'999, 0, 1s));
    CHECK(client.check(last_moment, 0) == allowed(9'999'999, 9'999'999, 0us));
    CHECK(client.check(last_moment, 9'999'999) == allowed(9'999'999, 0, 1s));
}

TEST_CASE("a cost of zero is allowed and changes nothing") {
    Client client(TokenBucket{.capacity = 2, .refill = per_second(1)});
    CHECK(client.check(1s, 2) == allowed(2, 0, 2s));
    const auto before = client.state();
    CHECK(client.check(1'500ms, 0) == allowed(2, 0, 1'500ms));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a cost above the capacity never passes and changes nothing") {
    Client client(TokenBucket{.capacity = 2, .refill = per_second(1)});
    const auto fresh = client.state();
    CHECK(client.check(1s, 3) == rejected(2, 2, never, 0us));
    CHECK(same_bits(client.state(), fresh));

    CHECK(client.check(1s, 1) == allowed(2, 1, 1s));
    const auto before = client.state();
    CHECK(client.check(1s, 3) == rejected(2, 1, never, 1s));
    CHECK(client.check(1s, largest_cost) == rejected(2, 1, never, 1s));
    CHECK(client.check(1s, largest_cost - 1) == rejected(2, 1, never, 1s));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a rejection leaves every bit as it was") {
    Client client(TokenBucket{.capacity = 2, .refill = per_second(1)});
    CHECK(client.check(1s, 2).allowed);
    const auto before = client.state();
    CHECK(client.check(1'999'999us, 1) == rejected(2, 0, 1us, 1'000'001us));
    CHECK(client.check(2'500ms, 2) == rejected(2, 1, 500ms, 500ms));
    CHECK(client.check(0s, 1) == rejected(2, 0, 2s, 3s));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a clock that goes back mints nothing, and the wait counts from the time it is asked at") {
    Client client(TokenBucket{.capacity = 5, .refill = per_second(2)});
    CHECK(client.check(100s, 5) == allowed(5, 0, 2'500ms));
    CHECK(client.check(90s, 1) == rejected(5, 0, 10'500ms, 12'500ms));
    CHECK(client.check(100'499'999us, 1) == rejected(5, 0, 1us, 2'000'001us));
    CHECK(client.check(100'500ms, 1) == allowed(5, 0, 2'500ms));

    // Taken at an earlier time, it is stamped with the latest that was seen.
    CHECK(client.refund(200s, 0) == allowed(5, 5, 0us));
    CHECK(client.check(200s, 1) == allowed(5, 4, 500ms));
    CHECK(client.check(150s, 4) == allowed(5, 0, 52'500ms));
    CHECK(client.check(200s, 1) == rejected(5, 0, 500ms, 2'500ms));
}

TEST_CASE("the phase of a key does not matter to a bucket") {
    Client client(TokenBucket{.capacity = 1, .refill = per_second(1)}, 123'456'789);
    CHECK(client.check(0s) == allowed(1, 0, 1s));
    CHECK(client.check(999'999us) == rejected(1, 0, 1us, 1us));
    CHECK(client.check(1s) == allowed(1, 0, 1s));
}

TEST_CASE("a larger capacity helps a blocked client at once") {
    Client client(TokenBucket{.capacity = 10, .refill = per_second(1)});
    CHECK(client.check(0s, 10) == allowed(10, 0, 10s));
    client.use(TokenBucket{.capacity = 20, .refill = per_second(1)});
    CHECK(client.check(0s, 4) == allowed(20, 6, 14s));
}

TEST_CASE("under a smaller capacity what was used stays used, up to twice the capacity") {
    Client client(TokenBucket{.capacity = 10, .refill = per_second(1)});
    CHECK(client.check(0s, 8) == allowed(10, 2, 8s));
    client.use(TokenBucket{.capacity = 5, .refill = per_second(1)});
    CHECK(client.check(0s, 1) == rejected(5, 0, 4s, 8s));
    client.use(TokenBucket{.capacity = 3, .refill = per_second(1)});
    CHECK(client.check(0s, 1) == rejected(3, 0, 4s, 6s));

    // A rejection kept the 8; back under the old plan they count again.
    client.use(TokenBucket{.capacity = 10, .refill = per_second(1)});
    CHECK(client.check(0s, 0) == allowed(10, 2, 8s));
}

TEST_CASE("time since the last change is credited at the rate of the present call") {
    Client client(TokenBucket{.capacity = 10, .refill = per_second(1)});
    CHECK(client.check(0s, 10) == allowed(10, 0, 10s));
    client.use(TokenBucket{.capacity = 10, .refill = per_second(5)});
    CHECK(client.check(1s, 0) == allowed(10, 5, 1s));
    client.use(TokenBucket{.capacity = 10, .refill = per(1, 2s)});
    CHECK(client.check(1s, 0) == allowed(10, 0, 19s));
}

TEST_CASE("progress is dropped under another period, and kept under the same fraction written otherwise") {
    const TokenBucket slow{.capacity = 2, .refill = per_second(1)};
    Client client(slow);
    CHECK(client.check(0s, 2) == allowed(2, 0, 2s));
    CHECK(client.check(1'500ms, 1) == allowed(2, 0, 1'500ms));  // half a token of progress

    client.use(TokenBucket{.capacity = 2, .refill = per(60, 60s)});
    CHECK(client.check(1'500ms, 0) == allowed(2, 0, 1'500ms));
    client.use(TokenBucket{.capacity = 2, .refill = per(3, 1s)});  // thirds of the same microseconds
    CHECK(client.check(1'500ms, 0) == allowed(2, 0, 500ms));
    client.use(TokenBucket{.capacity = 2, .refill = per(1, 2s)});
    CHECK(client.check(1'500ms, 0) == allowed(2, 0, 4s));
    client.use(slow);
    CHECK(client.check(1'500ms, 0) == allowed(2, 0, 1'500ms));
}

TEST_CASE("a refund gives back, never above full") {
    Client client(TokenBucket{.capacity = 5, .refill = per_second(1)});
    CHECK(client.check(0s, 4) == allowed(5, 1, 4s));
    CHECK(client.refund(500ms, 3) == allowed(5, 4, 500ms));
    CHECK(client.refund(500ms, 3) == allowed(5, 5, 0us));
    CHECK(client.check(500ms, 5) == allowed(5, 0, 5s));
    CHECK(client.refund(500ms, largest_cost) == allowed(5, 5, 0us));
    CHECK(client.check(500ms, 6) == rejected(5, 5, never, 0us));
}

TEST_CASE("a refund of a debt answers what a check of cost zero would") {
    Client client(TokenBucket{.capacity = 5, .refill = per_second(1)});
    CHECK(client.charge(0s, 9) == rejected(5, 0, 4s, 9s));
    CHECK(client.refund(0s, 1) == allowed(5, 0, 8s));
    CHECK(client.refund(0s, 4) == allowed(5, 1, 4s));
}

TEST_CASE("a refund of nothing, and to a full bucket, changes nothing") {
    Client client(TokenBucket{.capacity = 5, .refill = per_second(1)});
    const auto fresh = client.state();
    CHECK(client.refund(3s, 2) == allowed(5, 5, 0us));
    CHECK(same_bits(client.state(), fresh));

    CHECK(client.check(3s, 2) == allowed(5, 3, 2s));
    const auto before = client.state();
    CHECK(client.refund(4s, 0) == allowed(5, 4, 1s));
    CHECK(client.refund(60s, 1) == allowed(5, 5, 0us));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a charge takes past the limit, and tells whether the client is still within it") {
    Client client(TokenBucket{.capacity = 50, .refill = per_second(50)});
    CHECK(client.charge(0s, 50) == allowed(50, 0, 1s));
    CHECK(client.charge(0s, 30) == rejected(50, 0, 600ms, 1'600ms));
    CHECK(client.check(0s, 1) == rejected(50, 0, 620ms, 1'600ms));
    CHECK(client.charge(600ms, 0) == allowed(50, 0, 1s));
}

TEST_CASE("a debt is at most one full limit") {
    Client client(TokenBucket{.capacity = 50, .refill = per_second(50)});
    CHECK(client.charge(0s, largest_cost) == rejected(50, 0, 1s, 2s));
    CHECK(client.charge(0s, 1) == rejected(50, 0, 1s, 2s));
    CHECK(client.check(0s, 1) == rejected(50, 0, 1'020ms, 2s));
    CHECK(client.check(1'019'999us, 1) == rejected(50, 0, 1us, 980'001us));
    CHECK(client.check(1'020ms, 1) == allowed(50, 0, 1s));
}

TEST_CASE("a charge of nothing changes nothing") {
    Client client(TokenBucket{.capacity = 5, .refill = per_second(1)});
    CHECK(client.charge(0s, 7) == rejected(5, 0, 2s, 7s));
    const auto before = client.state();
    CHECK(client.charge(1s, 0) == rejected(5, 0, 1s, 6s));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("reservations get their turn in the order of the calls") {
    Client client(TokenBucket{.capacity = 2, .refill = per_second(1)});
    const auto turn =
        [](std::uint64_t remaining, std::chrono::microseconds reset_after, std::chrono::microseconds wait) {
            return penstock::Reservation{allowed(2, remaining, reset_after), wait};
        };
    CHECK(client.reserve(0s, 10s) == turn(1, 1s, 0s));
    CHECK(client.reserve(0s, 10s) == turn(0, 2s, 0s));
    CHECK(client.reserve(0s, 10s) == turn(0, 3s, 1s));
    CHECK(client.reserve(0s, 10s) == turn(0, 4s, 2s));
    CHECK(client.reserve(500ms, 10s).decision == rejected(2, 0, 500ms + 2s, 3'500ms));
    CHECK(client.reserve(1s, 10s) == turn(0, 4s, 2s));
    CHECK(client.check(1s, 1) == rejected(2, 0, 3s, 4s));
}

TEST_CASE("a reservation is made up to the longest wait allowed, and not a microsecond beyond") {
    Client client(TokenBucket{.capacity = 2, .refill = per_second(1)});
    CHECK(client.check(0s, 2).allowed);
    const auto before = client.state();
    const penstock::Reservation refused{rejected(2, 0, 1s, 2s), 0us};
    CHECK(client.reserve(0s, 999'999us) == refused);
    CHECK(client.reserve(0s, 0us) == refused);
    CHECK(client.reserve(0s, -1s) == refused);
    CHECK(client.reserve(0s, (std::chrono::microseconds::min)()) == refused);
    CHECK(same_bits(client.state(), before));
    CHECK(client.reserve(0s, 1s) == penstock::Reservation{allowed(2, 0, 3s), 1s});
}

TEST_CASE("a reservation goes into debt by one full limit at most, however long it may wait") {
    Client client(TokenBucket{.capacity = 3, .refill = per_second(1)});
    CHECK(client.reserve(0s, never, 3) == penstock::Reservation{allowed(3, 0, 3s), 0s});
    CHECK(client.reserve(0s, never, 2) == penstock::Reservation{allowed(3, 0, 5s), 2s});
    const auto before = client.state();
    CHECK(client.reserve(0s, never, 2) == penstock::Reservation{rejected(3, 0, 4s, 5s), 0s});
    CHECK(same_bits(client.state(), before));
    CHECK(client.reserve(0s, never, 1) == penstock::Reservation{allowed(3, 0, 6s), 3s});
    CHECK(client.reserve(0s, never, 1) == penstock::Reservation{rejected(3, 0, 4s, 6s), 0s});
}

TEST_CASE("a reservation of nothing is granted, of more than the capacity never") {
    Client client(TokenBucket{.capacity = 3, .refill = per_second(1)});
    CHECK(client.charge(0s, 5) == rejected(3, 0, 2s, 5s));
    const auto before = client.state();
    CHECK(client.reserve(0s, 10s, 0) == penstock::Reservation{allowed(3, 0, 5s), 0s});
    CHECK(client.reserve(0s, never, 4) == penstock::Reservation{rejected(3, 0, never, 5s), 0s});
    CHECK(client.reserve(0s, never, largest_cost) == penstock::Reservation{rejected(3, 0, never, 5s), 0s});
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a reservation by a clock that went back waits that much longer") {
    Client client(TokenBucket{.capacity = 1, .refill = per_second(1)});
    CHECK(client.check(100s) == allowed(1, 0, 1s));
    CHECK(client.reserve(90s, 10s) == penstock::Reservation{rejected(1, 0, 11s, 11s), 0s});
    CHECK(client.reserve(90s, 11s) == penstock::Reservation{allowed(1, 0, 12s), 11s});
}

TEST_CASE("a state says when the bucket is full again, at the latest") {
    constexpr penstock::Micros token = std::uint64_t{1} << 20;  // 1 s, rounded up
    Client client(TokenBucket{.capacity = 2, .refill = per_second(1)});
    CHECK(TokenBucket::fresh_at(client.state()) == 0);
    CHECK(client.check(5s, 2).allowed);
    CHECK(TokenBucket::fresh_at(client.state()) == 5'000'000 + 2 * token);
    CHECK_FALSE(client.check(5'500ms, 2).allowed);
    CHECK(TokenBucket::fresh_at(client.state()) == 5'000'000 + 2 * token);
    CHECK(client.refund(6s, 1).allowed);
    CHECK(TokenBucket::fresh_at(client.state()) == 6'000'000);
    CHECK(client.charge(4s, 1).allowed);
    CHECK(TokenBucket::fresh_at(client.state()) == 6'000'000 + token);
}

TEST_CASE("the slowest refill that a client was used with decides when it is fresh") {
    TokenBucket::State state;
    const auto slow = penstock::plan(TokenBucket{.capacity = 100, .refill = per_hour(1)});
    const auto fast = penstock::plan(TokenBucket{.capacity = 100, .refill = per_second(100)});
    CHECK(TokenBucket::step(state, slow, 0, 1, 0).allowed);
    CHECK(TokenBucket::step(state, fast, 0, 99, 0).allowed);
    CHECK(TokenBucket::fresh_at(state) >= 100 * std::uint64_t{3'600'000'000});
    // In between full again by the fast plan, which says nothing about the slow one.
    CHECK(TokenBucket::step(state, fast, 2'000'000, 1, 0).allowed);
    CHECK(TokenBucket::fresh_at(state) >= 2'000'000 + std::uint64_t{3'600'000'000});
}

TEST_CASE("the largest bucket and the slowest rate for it count every token and microsecond") {
    Client client(TokenBucket{.capacity = largest_limit, .refill = per(1, 8'191us)});
    CHECK(client.check(0us, largest_limit) == allowed(largest_limit, 0, largest_limit * 8'191us));
    CHECK(client.check(0us, largest_limit) ==
          rejected(largest_limit, 0, largest_limit * 8'191us, largest_limit * 8'191us));
    CHECK(client.check(8'190us, 1) == rejected(largest_limit, 0, 1us, largest_limit * 8'191us - 8'190us));
    CHECK(client.check(8'191us, 1) == allowed(largest_limit, 0, largest_limit * 8'191us));
    CHECK(client.charge(8'191us, largest_cost) ==
          rejected(largest_limit, 0, largest_limit * 8'191us, 2 * largest_limit * 8'191us));
}

TEST_CASE("the largest bucket and the fastest rate for it count every token and microsecond") {
    Client client(TokenBucket{.capacity = largest_limit, .refill = per_second(10'000'000)});
    CHECK(client.check(0us, largest_limit) == allowed(largest_limit, 0, 54'975'581'389us));  // 38.8 tenths rounded up
    CHECK(client.check(1us, 11) == rejected(largest_limit, 10, 1us, 54'975'581'388us));
    CHECK(client.check(1us, 10) == allowed(largest_limit, 0, 54'975'581'389us));
    CHECK(client.check(last_moment, largest_limit) == allowed(largest_limit, 0, 54'975'581'389us));
}

TEST_CASE("the longest period gives one token back at its end") {
    Client client(TokenBucket{.capacity = 1, .refill = per(1, longest_period)});
    CHECK(client.check(0us) == allowed(1, 0, longest_period));
    CHECK(client.check(longest_period - 1us) == rejected(1, 0, 1us, 1us));
    CHECK(client.check(longest_period) == allowed(1, 0, longest_period));
    CHECK(client.check(last_moment) == allowed(1, 0, longest_period));
    CHECK(client.check(0us) == rejected(1, 0, last_moment + longest_period, last_moment + longest_period));
}

TEST_CASE("the longest period with the most tokens is the fastest rate") {
    const std::int64_t most = longest_period.count() * 10;
    Client client(TokenBucket{.capacity = 20, .refill = per(most, longest_period)});
    CHECK(client.check(0us, 20) == allowed(20, 0, 2us));
    CHECK(client.check(1us, 11) == rejected(20, 10, 1us, 1us));
    CHECK(client.check(1us, 10) == allowed(20, 0, 2us));
}

TEST_CASE("the longest refill that is allowed is counted to its last microsecond") {
    // Twice 6361 tokens at two per 1416003655831 us take 2^53 - 1 us, on the dot.
    Client client(TokenBucket{.capacity = 6'361, .refill = per(2, 1'416'003'655'831us)});
    CHECK(client.charge(0us, largest_cost).reset_after == last_moment);
    CHECK(client.check(last_moment - 1us, 0) == allowed(6'361, 6'360, 1us));
    CHECK(client.check(last_moment, 0) == allowed(6'361, 6'361, 0us));
}

constexpr TokenBucket valid{.capacity = 3, .refill = per_hour(1)};

TEST_CASE("a bucket of no capacity, or of more than 2^39, is refused") {
    CHECK(refusal({.capacity = 0, .refill = per_second(10)}, valid) ==
          "TokenBucket.capacity is 0: allowed is 1 to 549755813888");
    CHECK(refusal({.capacity = largest_limit + 1, .refill = per_second(10)}, valid) ==
          "TokenBucket.capacity is 549755813889: allowed is 1 to 549755813888");
    CHECK(refusal({.capacity = largest_cost, .refill = per_second(10)}, valid) ==
          "TokenBucket.capacity is 18446744073709551615: allowed is 1 to 549755813888");
}

TEST_CASE("a refill of nothing, or of less, is refused") {
    CHECK(refusal({.capacity = 3, .refill = per_second(0)}, valid) ==
          "TokenBucket.refill.count is 0: allowed is 1 or more");
    CHECK(refusal({.capacity = 3, .refill = per_second(-1)}, valid) ==
          "TokenBucket.refill.count is -1: allowed is 1 or more");
    CHECK(refusal({.capacity = 3}, valid) == "TokenBucket.refill.count is 0: allowed is 1 or more");
}

TEST_CASE("a period of no time, of less, or of more than 2^45 us, is refused") {
    CHECK(refusal({.capacity = 3, .refill = per(1, 0us)}, valid) ==
          "TokenBucket.refill.period is 0 us: allowed is 1 us to 35184372088832 us");
    CHECK(refusal({.capacity = 3, .refill = per(1, -1us)}, valid) ==
          "TokenBucket.refill.period is -1 us: allowed is 1 us to 35184372088832 us");
    CHECK(refusal({.capacity = 3, .refill = per(1, longest_period + one_us)}, valid) ==
          "TokenBucket.refill.period is 35184372088833 us: allowed is 1 us to 35184372088832 us");
    CHECK(refusal({.capacity = 3, .refill = per(1, never)}, valid) ==
          "TokenBucket.refill.period is 9223372036854775807 us: allowed is 1 us to 35184372088832 us");
}

TEST_CASE("more than ten million per second are refused, however they are written") {
    CHECK(refusal({.capacity = 3, .refill = per_second(10'000'001)}, valid) ==
          "TokenBucket.refill is 10000001 per 1000000 us: allowed is at most 10000000 per second");
    CHECK(refusal({.capacity = 3, .refill = per(11, 1us)}, valid) ==
          "TokenBucket.refill is 11 per 1 us: allowed is at most 10000000 per second");
    CHECK(refusal({.capacity = 3, .refill = per(longest_period.count() * 10 + 1, longest_period)}, valid) ==
          "TokenBucket.refill is 351843720888321 per 35184372088832 us: allowed is at most 10000000 per second");
    CHECK(refusal({.capacity = 3, .refill = per((std::numeric_limits<std::uint64_t>::max)(), 1s)}, valid) ==
          "TokenBucket.refill is 9223372036854775807 per 1000000 us: allowed is at most 10000000 per second");
}

TEST_CASE("a bucket that takes 2^53 us or longer to refill twice is refused") {
    CHECK(refusal({.capacity = 128, .refill = per(1, longest_period)}, valid) ==
          "TokenBucket.capacity is 128 at a refill of 1 per 35184372088832 us: "
          "allowed is what is refilled twice in less than 9007199254740992 us");
    CHECK(refusal({.capacity = largest_limit, .refill = per(1, 8'192us)}, valid) ==
          "TokenBucket.capacity is 549755813888 at a refill of 1 per 8192 us: "
          "allowed is what is refilled twice in less than 9007199254740992 us");
    // Half a microsecond less than that, but whole ones are counted.
    CHECK(refusal({.capacity = 513, .refill = per(4, 35'115'786'568'191us)}, valid) ==
          "TokenBucket.capacity is 513 at a refill of 4 per 35115786568191 us: "
          "allowed is what is refilled twice in less than 9007199254740992 us");
    // Beyond 64 bits.
    CHECK(refusal({.capacity = largest_limit, .refill = per(1, longest_period)}, valid) ==
          "TokenBucket.capacity is 549755813888 at a refill of 1 per 35184372088832 us: "
          "allowed is what is refilled twice in less than 9007199254740992 us");
    CHECK(refusal({.capacity = 6'362, .refill = per(2, 1'416'003'655'831us)}, valid) ==
          "TokenBucket.capacity is 6362 at a refill of 2 per 1416003655831 us: "
          "allowed is what is refilled twice in less than 9007199254740992 us");
}

TEST_CASE("a plan gives back the parameters it was made of, not their reduced form") {
    const TokenBucket bucket{.capacity = 20, .refill = per(60, 60s)};
    CHECK(penstock::plan(bucket).algorithm() == bucket);
    CHECK(penstock::plan(bucket).algorithm() != TokenBucket{.capacity = 20, .refill = per_second(1)});
}

}  // namespace
