// SPDX-License-Identifier: MIT
// The reference itself, against vectors worked out by hand.
#include "../support/rational_reference.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace {

using reference::Decision;
using reference::FixedWindow;
using reference::never;
using reference::SlidingWindow;
using reference::TokenBucket;

constexpr std::int64_t millisecond = 1'000;
constexpr std::int64_t second = 1'000'000;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t hour = 60 * minute;
constexpr std::int64_t day = 24 * hour;

/// One client of one algorithm.
template <class Algorithm>
class Client {
public:
    explicit Client(Algorithm algorithm) : algorithm_(std::move(algorithm)) {}

    Decision take(std::int64_t now, std::uint64_t cost = 1) { return check(algorithm_, state_, now, cost, phase_); }
    Decision peek(std::int64_t now, std::uint64_t cost = 1) {
        return reference::peek(algorithm_, state_, now, cost, phase_);
    }
    Decision refund(std::int64_t now, std::uint64_t cost) {
        return reference::refund(algorithm_, state_, now, cost, phase_);
    }
    Decision charge(std::int64_t now, std::uint64_t cost) {
        return reference::charge(algorithm_, state_, now, cost, phase_);
    }
    reference::Reservation reserve(std::int64_t now, std::int64_t max_wait, std::uint64_t cost = 1) {
        return reference::reserve(algorithm_, state_, now, cost, phase_, max_wait);
    }
    void configure(Algorithm algorithm) { algorithm_ = std::move(algorithm); }
    void set_phase(std::int64_t phase) { phase_ = phase; }

private:
    Algorithm algorithm_;
    typename Algorithm::State state_;
    std::int64_t phase_ = 0;
};

FixedWindow fixed(std::uint64_t limit, std::int64_t window, std::int64_t offset = 0) {
    return {limit, window, false, offset};
}

SlidingWindow sliding(std::uint64_t limit, std::int64_t window) {
    return {limit, window, false};
}

}  // namespace

TEST_CASE("five at once, then two per second") {
    Client client(TokenBucket(5, 2, second));
    std::vector<bool> allowed;
    for (const auto& [time, checks] : {std::pair{0, 6}, std::pair{500, 2}, std::pair{1500, 3}}) {
        for (int i = 0; i < checks; ++i) {
            allowed.push_back(client.take(time * millisecond).allowed);
        }
    }
    CHECK(allowed == std::vector<bool>{true, true, true, true, true, false, true, false, true, true, false});
}

TEST_CASE("a rational rate admits on the exact microsecond") {
    Client client(TokenBucket(1, 10, 13 * second));
    CHECK(client.take(0) == Decision{true, 1, 0, 0, 1'300'000});
    CHECK(client.take(0) == Decision{false, 1, 0, 1'300'000, 1'300'000});
    CHECK(client.take(1'299'999) == Decision{false, 1, 0, 1, 1});
    CHECK(client.take(1'300'000) == Decision{true, 1, 0, 0, 1'300'000});
}

TEST_CASE("a long idle time refills to full and no more") {
    Client client(TokenBucket(9'999'999, 9'999'999, second));
    CHECK(client.take(0, 9'999'999) == Decision{true, 9'999'999, 0, 0, second});
    CHECK(client.take(30 * day) == Decision{true, 9'999'999, 9'999'998, 0, 1});
}

TEST_CASE("a charge goes into debt by one full capacity at most") {
    Client client(TokenBucket(50, 50, second));
    CHECK(client.charge(0, 80) == Decision{false, 50, 0, 600'000, 1'600'000});
    CHECK(client.take(0) == Decision{false, 50, 0, 620'000, 1'600'000});
    CHECK(client.charge(0, 1000) == Decision{false, 50, 0, 1'000'000, 2'000'000});
    CHECK(client.take(0) == Decision{false, 50, 0, 1'020'000, 2'000'000});
}

TEST_CASE("a clock behind the stamp waits that much longer") {
    Client client(TokenBucket(5, 2, second));
    CHECK(client.take(100 * second, 5).allowed);
    CHECK(client.take(90 * second) == Decision{false, 5, 0, 10'500'000, 12'500'000});
    CHECK(client.take(100'499'999) == Decision{false, 5, 0, 1, 2'000'001});
    CHECK(client.take(100'500'000) == Decision{true, 5, 0, 0, 2'500'000});
}

TEST_CASE("a clock behind the stamp mints nothing") {
    Client client(TokenBucket(10, 1, second));
    CHECK(client.take(100 * second, 10).allowed);
    CHECK(client.take(90 * second).retry_after == 11 * second);
}

TEST_CASE("progress of a unit survives a plan of the same denominator and is dropped by another") {
    Client client(TokenBucket(10, 1, second));
    CHECK(client.take(0, 10).allowed);
    CHECK(client.charge(600 * millisecond, 1).retry_after == 400 * millisecond);  // 11 used, 0.6 of one given back
    client.configure(TokenBucket(20, 2, 2 * second));
    CHECK(client.peek(600 * millisecond, 10).retry_after == 400 * millisecond);
    client.configure(TokenBucket(20, 1, 2 * second));
    CHECK(client.peek(600 * millisecond, 10).retry_after == 2 * second);
}

TEST_CASE("a reservation takes from the future up to one full capacity") {
    Client client(TokenBucket(2, 1, second));
    CHECK(client.reserve(0, 0, 2) == reference::Reservation{{true, 2, 0, 0, 2 * second}, 0});
    CHECK(client.reserve(0, second - 1) == reference::Reservation{{false, 2, 0, second, 2 * second}, 0});
    CHECK(client.reserve(0, second) == reference::Reservation{{true, 2, 0, 0, 3 * second}, second});
    CHECK(client.reserve(0, 9 * second) == reference::Reservation{{true, 2, 0, 0, 4 * second}, 2 * second});
    CHECK(client.reserve(0, 9 * second) == reference::Reservation{{false, 2, 0, 3 * second, 4 * second}, 0});
    CHECK(client.reserve(0, never, 3) == reference::Reservation{{false, 2, 0, never, 4 * second}, 0});
}

TEST_CASE("a refund gives back no more than was used") {
    Client bucket(TokenBucket(5, 1, second));
    CHECK(bucket.take(0, 3).remaining == 2);
    CHECK(bucket.refund(0, 1) == Decision{true, 5, 3, 0, 2 * second});
    CHECK(bucket.refund(0, 9) == Decision{true, 5, 5, 0, 0});

    Client window(fixed(5, second));
    CHECK(window.take(0, 3).remaining == 2);
    CHECK(window.refund(0, 9) == Decision{true, 5, 5, 0, 0});
    CHECK(window.take(0, 3).remaining == 2);
    CHECK(window.refund(second, 3) == Decision{true, 5, 5, 0, 0});
    CHECK(window.take(second, 5).remaining == 0);
}

TEST_CASE("a sliding window keeps fractions at low rates") {
    Client client(sliding(1, second));
    CHECK(client.take(0) == Decision{true, 1, 0, 0, 2 * second});
    CHECK(client.take(0) == Decision{false, 1, 0, 2 * second, 2 * second});
    CHECK(client.take(1'500'000) == Decision{false, 1, 0, 500'000, 500'000});
    CHECK(client.take(1'999'999) == Decision{false, 1, 0, 1, 1});
    CHECK(client.take(2 * second) == Decision{true, 1, 0, 0, 2 * second});
}

TEST_CASE("a sliding window admits when its formula first holds") {
    Client client(sliding(10, minute));
    CHECK(client.take(0, 10).allowed);
    CHECK(client.take(minute) == Decision{false, 10, 0, 6 * second, minute});
    CHECK_FALSE(client.take(65'999'999).allowed);
    CHECK(client.take(66 * second).allowed);
}

TEST_CASE("a repeating fraction is rounded up to the next microsecond") {
    Client client(sliding(3, second));
    CHECK(client.take(0, 3).allowed);
    CHECK(client.take(second) == Decision{false, 3, 0, 333'334, second});
    CHECK(client.take(1'333'333) == Decision{false, 3, 0, 1, 666'667});
    CHECK(client.take(1'333'334) == Decision{true, 3, 0, 0, 1'666'666});
}

TEST_CASE("a charge on a sliding window goes into debt by one full limit at most") {
    Client client(sliding(10, 100));
    CHECK(client.take(0, 10).allowed);
    CHECK(client.charge(150, 100) == Decision{false, 10, 0, 84, 150});  // 15 + 5 used: 15 x (1 - e) <= 10 at e = 33.3
    CHECK(client.take(150, 10) == Decision{false, 10, 0, 150, 150});
}

TEST_CASE("a window of another length takes over what was used") {
    Client client(sliding(10, 100));
    CHECK(client.take(50, 8).allowed);
    CHECK(client.take(125, 1).remaining == 3);  // 8 x 0.75 + 1
    client.configure(sliding(10, 60));
    CHECK(client.peek(125) == Decision{true, 10, 2, 0, 115});  // 1 + 6 in the window from 120 on
    CHECK(client.peek(180) == Decision{true, 10, 2, 0, 120});  // the 7 just turned previous
    CHECK(client.peek(210) == Decision{true, 10, 5, 0, 90});   // 3.5, of which 4 count
}

TEST_CASE("staggered windows are shifted by the phase and offsets may be negative") {
    Client staggered(FixedWindow(2, 100, true, 0));
    staggered.set_phase(1030);
    CHECK(staggered.take(0, 2) == Decision{true, 2, 0, 0, 30});
    CHECK(staggered.take(29) == Decision{false, 2, 0, 1, 1});
    CHECK(staggered.take(30) == Decision{true, 2, 1, 0, 100});

    Client shifted(fixed(2, 100, -30));
    CHECK(shifted.take(0, 2) == Decision{true, 2, 0, 0, 70});
    CHECK(shifted.take(70) == Decision{true, 2, 1, 0, 100});
}

TEST_CASE("a rejection takes nothing from the other limits") {
    Client client(reference::AllOf(TokenBucket(10, 1, hour), fixed(3, minute)));
    for (const std::int64_t time : {0 * minute, 1 * minute, 2 * minute}) {
        int allowed = 0;
        for (int i = 0; i < 50; ++i) {
            allowed += client.take(time).allowed ? 1 : 0;
        }
        CHECK(allowed == 3);
    }
    CHECK(client.take(3 * minute).allowed);
    CHECK(client.take(3 * minute) == Decision{false, 10, 0, 3'420 * second, 10 * hour - 3 * minute});
}

TEST_CASE("the longest wait of those that reject is reported") {
    Client client(reference::AllOf(fixed(1, 10 * second), fixed(1, minute)));
    CHECK(client.take(0) == Decision{true, 1, 0, 0, 10 * second});
    CHECK(client.take(second) == Decision{false, 1, 0, 59 * second, 59 * second});
    CHECK(client.take(10 * second) == Decision{false, 1, 0, 50 * second, 50 * second});
}

TEST_CASE("the least remaining is reported, with the part it belongs to") {
    Client client(reference::AllOf(fixed(10, minute), fixed(4, hour), fixed(4, day)));
    CHECK(client.take(0, 3) == Decision{true, 4, 1, 0, hour});
    CHECK(client.take(0, 7) == Decision{false, 4, 1, never, hour});
    CHECK(client.take(0, 0) == Decision{true, 4, 1, 0, hour});
}

TEST_CASE("lowering the limit shows nothing remaining, raising it helps at once") {
    Client client(fixed(100, minute));
    CHECK(client.take(0, 50).remaining == 50);
    client.configure(fixed(2, minute));
    CHECK(client.take(second) == Decision{false, 2, 0, 59 * second, 59 * second});
    client.configure(fixed(60, minute));
    CHECK(client.take(second) == Decision{true, 60, 9, 0, 59 * second});
}

TEST_CASE("a cost of 0 is allowed, a cost above the limit never, and both change nothing") {
    Client bucket(TokenBucket(5, 1, second));
    Client window(sliding(5, second));
    CHECK(bucket.take(7, 0) == Decision{true, 5, 5, 0, 0});
    CHECK(window.take(7, 0) == Decision{true, 5, 5, 0, 0});
    for (const std::uint64_t cost : {std::uint64_t{6}, ~std::uint64_t{0}}) {
        CHECK(bucket.take(7, cost) == Decision{false, 5, 5, never, 0});
        CHECK(window.take(7, cost) == Decision{false, 5, 5, never, 0});
    }
}
