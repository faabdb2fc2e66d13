// SPDX-License-Identifier: MIT
#include <penstock/redis/script.hpp>

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>

#include "../../support/print.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::never;
using penstock::Op;
using penstock::per_second;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using penstock::redis::Layout;
using penstock::redis::Scripts;
using penstock::redis::Time;
using std::chrono::microseconds;
using Buckets = Scripts<TokenBucket>;
using Both = Scripts<AllOf<TokenBucket, FixedWindow>>;

namespace {

constexpr std::int64_t largest = (std::int64_t{1} << 53) - 1;
const auto bucket_plan = penstock::plan(TokenBucket{.capacity = 20, .refill = per_second(10)});

std::string pushed(
    const Buckets& scripts, Op op, std::uint64_t cost, penstock::Micros now = 0, microseconds max_wait = 0us) {
    std::string bytes;
    scripts.push(op, bucket_plan, now, cost, 0, max_wait, [&](std::string_view argument) { bytes += argument; });
    return bytes;
}

/// Numbers of 7 bytes, the least first.
std::string little_endian(const std::vector<std::uint64_t>& numbers) {
    std::string bytes;
    for (const std::uint64_t number : numbers) {
        for (unsigned shift = 0; shift < 56; shift += 8) {
            bytes += static_cast<char>(number >> shift & 0xffU);
        }
    }
    return bytes;
}

template <class AnyScripts = Buckets>
bool accepted(const std::vector<std::int64_t>& reply, Op op = Op::check) {
    Decision decision{};
    return AnyScripts::decision(reply, op, 20, decision);
}

Decision read(const std::vector<std::int64_t>& reply, Op op = Op::check) {
    Decision decision{};
    CHECK(Buckets::decision(reply, op, 20, decision));
    return decision;
}

}  // namespace

TEST_CASE("one script is for checks and peeks, another for the rest") {
    const Buckets scripts(Layout::packed, Time::server);
    CHECK(&scripts.script(Op::check) == &scripts.script(Op::peek));
    CHECK(&scripts.script(Op::refund) == &scripts.script(Op::charge));
    CHECK(&scripts.script(Op::refund) == &scripts.script(Op::reset));
    CHECK(&scripts.script(Op::refund) == &scripts.script(Op::reserve));
    CHECK(&scripts.script(Op::check) != &scripts.script(Op::refund));
    CHECK(scripts.script(Op::check).sha1 == penstock::redis::sha1(scripts.script(Op::check).text));
}

TEST_CASE("a reservation of what cannot reserve is a check, as in this process") {
    const Scripts<SlidingWindow> scripts(Layout::packed, Time::server);
    CHECK(&scripts.script(Op::check) == &scripts.script(Op::reserve));
    scripts.push(Op::reserve,
                 penstock::plan(SlidingWindow{.limit = 1, .window = 1s}),
                 0,
                 1,
                 0,
                 never,
                 [](std::string_view argument) { CHECK(argument.front() == '\0'); });
}

TEST_CASE("texts differ by algorithm, layout and clock, and by nothing else") {
    const auto sha1 = [](const auto& scripts) { return scripts.script(Op::check).sha1; };
    const std::string packed = sha1(Buckets(Layout::packed, Time::server));
    CHECK(packed == sha1(Buckets(Layout::packed, Time::server)));
    CHECK(packed != sha1(Buckets(Layout::per_key, Time::server)));
    CHECK(packed != sha1(Buckets(Layout::packed, Time::limiter)));
    CHECK(packed != sha1(Scripts<FixedWindow>(Layout::packed, Time::server)));
    CHECK(packed != sha1(Scripts<AllOf<TokenBucket>>(Layout::packed, Time::server)));
}

TEST_CASE("the arguments are the operation, the cost, the time where it is ours, and the plan") {
    const Buckets server(Layout::packed, Time::server);
    const Buckets limiter(Layout::packed, Time::limiter);
    CHECK(pushed(server, Op::check, 3) == '\0' + little_endian({3, 20, 1, 100'000, 17}));
    CHECK(pushed(server, Op::peek, 3) == '\1' + little_endian({3, 20, 1, 100'000, 17}));
    CHECK(pushed(limiter, Op::check, 3, 77) == '\0' + little_endian({3, 77, 20, 1, 100'000, 17}));
    CHECK(pushed(server, Op::charge, 3) == '\3' + little_endian({3, 0, 0, 20, 1, 100'000, 17}));
}

TEST_CASE("costs and waits beyond what a script can count are cut to what comes to the same") {
    constexpr auto most = static_cast<std::uint64_t>(largest);
    const Buckets scripts(Layout::packed, Time::server);
    const auto with = [](std::uint64_t cost, std::uint64_t patience, std::uint64_t more) {
        return '\4' + little_endian({cost, patience, more, 20, 1, 100'000, 17});
    };
    CHECK(pushed(scripts, Op::reserve, ~std::uint64_t{0}, 0, 5us) == with(most, 5, 0));
    CHECK(pushed(scripts, Op::reserve, 1, 0, -5us) == with(1, 0, 0));
    CHECK(pushed(scripts, Op::reserve, 1, 0, microseconds(largest + 9)) == with(1, most, 9));
    CHECK(pushed(scripts, Op::reserve, 1, 0, never) == with(1, most, most));
}

TEST_CASE("a reply becomes a decision") {
    CHECK(read({0, 19, 100'000}) == Decision{true, 20, 19, 0us, 100'000us});
    CHECK(read({-1 - 100'000, 0, 2'000'000}) == Decision{false, 20, 0, 100ms, 2s});
    CHECK(read({-1, 20, 0}) == Decision{false, 20, 20, never, 0us});
    CHECK(read({7, 0, 2'000'007}, Op::reserve) == Decision{true, 20, 0, 7us, 2'000'007us});
}

TEST_CASE("one number tells what is left and the wait until reset, or both waits of a rejection") {
    CHECK(read({100'000 * 21 + 19}) == Decision{true, 20, 19, 0us, 100ms});
    CHECK(read({20}) == Decision{true, 20, 20, 0us, 0us});
    CHECK(read({-1 - (2'000'000 * std::int64_t{94'906'265} + 100'000)}, Op::peek) == Decision{false, 20, 0, 100ms, 2s});
    CHECK(read({largest}).reset_after == microseconds(largest / 21));
}

TEST_CASE("how far the clock is behind is added to every wait there is") {
    CHECK(read({-1 - 5, 0, 7, 100, 100}) == Decision{false, 20, 0, 105us, 107us});
    CHECK(read({0, 19, 7, 100, 100}) == Decision{true, 20, 19, 0us, 107us});
    CHECK(read({0, 20, 0, 100, 100}) == Decision{true, 20, 20, 0us, 0us});
    CHECK(read({-1, 20, 0, 100, 100}) == Decision{false, 20, 20, never, 0us});
    CHECK(read({5, 0, 7, 100, 30}, Op::reserve) == Decision{true, 20, 0, 35us, 107us});
    CHECK(read({-1 - largest, 0, largest, largest, largest}).retry_after == microseconds(2 * largest));
}

TEST_CASE("the limit is that of the plan, or of the part that the reply tells") {
    CHECK(Buckets::limit_of(bucket_plan) == 20);
    Decision decision{};
    CHECK(Both::decision(std::vector<std::int64_t>{0, 3, 5, 9}, Op::check, 0, decision));
    CHECK(decision == Decision{true, 9, 3, 0us, 5us});
}

TEST_CASE("what no script of ours answers is refused, and the decision stays as it was") {
    CHECK_FALSE(accepted({}));
    CHECK_FALSE(accepted({0, 19}));
    CHECK_FALSE(accepted({largest + 1}));
    CHECK_FALSE(accepted({-2 - largest}));
    CHECK_FALSE(accepted({(std::numeric_limits<std::int64_t>::min)()}));
    CHECK_FALSE(accepted({-1}));
    CHECK_FALSE(accepted({19}, Op::charge));
    CHECK_FALSE(accepted({19}, Op::reserve));
    CHECK_FALSE(accepted<Both>({19}));
    CHECK_FALSE(accepted({0, 19, 5, 0}));
    CHECK_FALSE(accepted({0, 19, 5, 0, 0, 0}));
    CHECK_FALSE(accepted({1, 19, 5}));
    CHECK_FALSE(accepted({0, 21, 5}));
    CHECK_FALSE(accepted({0, -1, 5}));
    CHECK_FALSE(accepted({0, 19, -1}));
    CHECK_FALSE(accepted({0, 19, largest + 1}));
    CHECK_FALSE(accepted({0, 19, 5, -1, 0}));
    CHECK_FALSE(accepted({largest + 1, 19, 5}, Op::reserve));
    CHECK_FALSE(accepted({-2 - largest, 19, 5}));
    CHECK_FALSE(accepted({(std::numeric_limits<std::int64_t>::min)(), 19, 5}));
    CHECK_FALSE(accepted<Both>({0, 3, 5}));
    CHECK_FALSE(accepted<Both>({0, 3, 5, (std::int64_t{1} << 39) + 1}));

    Decision decision{true, 1, 1, 1us, 1us};
    CHECK_FALSE(Buckets::decision(std::vector<std::int64_t>{0, 21, 5}, Op::check, 20, decision));
    CHECK(decision == Decision{true, 1, 1, 1us, 1us});
}

TEST_CASE("a reset is answered by nothing") {
    CHECK(accepted({}, Op::reset));
    CHECK_FALSE(accepted({0, 19, 5}, Op::reset));
}
