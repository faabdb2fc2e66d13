// SPDX-License-Identifier: MIT
#include <penstock/algorithm/sliding_window.hpp>

#include <doctest/doctest.h>

#include "../../support/client.hpp"
#include "../../support/decisions.hpp"
#include "../../support/print.hpp"
#include "../../support/refusal.hpp"

#include <chrono>
#include <cstdint>
#include <limits>

namespace {

using namespace std::chrono_literals;
using penstock::Align;
using penstock::never;
using penstock::SlidingWindow;
using support::allowed;
using support::largest_limit;
using support::last_moment;
using support::longest_period;
using support::one_us;
using support::refusal;
using support::rejected;
using support::same_bits;
using Client = support::Client<SlidingWindow>;

constexpr std::uint64_t largest_cost = (std::numeric_limits<std::uint64_t>::max)();

TEST_CASE("a client may take its limit at once, and waits until the window has slid on for more") {
    Client client(SlidingWindow{.limit = 10, .window = 10s});
    CHECK(client.check(4s, 0) == allowed(10, 10, 0us));
    CHECK(client.check(4s, 10) == allowed(10, 0, 16s));
    CHECK(client.check(4s, 1) == rejected(10, 0, 7s, 16s));
    CHECK(client.check(10'999'999us, 1) == rejected(10, 0, 1us, 9'000'001us));
    CHECK(client.check(11s, 1) == allowed(10, 0, 19s));
}

TEST_CASE("the window before weighs by what is left of it") {
    Client client(SlidingWindow{.limit = 10, .window = 10s});
    CHECK(client.check(4s, 10).allowed);
    CHECK(client.check(10s, 0) == allowed(10, 0, 10s));
    CHECK(client.check(12'500ms, 0) == allowed(10, 2, 7'500ms));
    CHECK(client.check(12'500ms, 3) == rejected(10, 2, 500ms, 7'500ms));
    CHECK(client.check(12'500ms, 2) == allowed(10, 0, 17'500ms));
    CHECK(client.check(19'999'999us, 0) == allowed(10, 7, 10'000'001us));
    CHECK(client.check(20s, 0) == allowed(10, 8, 10s));
}

TEST_CASE("remaining is the largest cost that is admitted") {
    const SlidingWindow sliding{.limit = 7, .window = 10s};
    for (std::uint64_t taken = 1; taken <= 7; ++taken) {
        for (std::chrono::microseconds now = 10s; now < 20s; now += 333'333us) {
            CAPTURE(taken);
            CAPTURE(now);
            Client client(sliding);
            CHECK(client.check(0s, taken).allowed);
            const std::uint64_t remaining = client.check(now, 0).remaining;
            CHECK_FALSE(client.check(now, remaining + 1).allowed);
            CHECK(client.check(now, remaining).allowed);
        }
    }
}

TEST_CASE("a sliding window decides at compile time") {
    constexpr auto blocked = [] {
        Client client(SlidingWindow{.limit = 10, .window = 10s});
        (void)client.check(4s, 10);
        return client.check(12'500ms, 3);
    }();
    static_assert(blocked == rejected(10, 2, 500ms, 7'500ms));
    CHECK(blocked == rejected(10, 2, 500ms, 7'500ms));
}

TEST_CASE("a pause of two windows forgets all") {
    Client client(SlidingWindow{.limit = 10, .window = 10s});
    CHECK(client.check(9'999'999us, 10) == allowed(10, 0, 10'000'001us));
    CHECK(client.check(19'999'999us, 0) == allowed(10, 9, 1us));
    CHECK(client.check(20s, 0) == allowed(10, 10, 0us));
    CHECK(client.check(20s, 10) == allowed(10, 0, 20s));
}

TEST_CASE("the full limit waits for the end of the next window") {
    Client client(SlidingWindow{.limit = 10, .window = 10s});
    CHECK(client.check(0s, 1) == allowed(10, 9, 20s));
    CHECK(client.check(0s, 10) == rejected(10, 9, 20s, 20s));
    CHECK(client.check(19'999'999us, 10) == rejected(10, 9, 1us, 1us));
    CHECK(client.check(20s, 10) == allowed(10, 0, 20s));
}

TEST_CASE("a wait may end within the window, and exactly at its end") {
    Client client(SlidingWindow{.limit = 4, .window = 10s});
    CHECK(client.check(0s, 4).allowed);
    CHECK(client.check(15s, 2) == allowed(4, 0, 15s));
    CHECK(client.check(15s, 1) == rejected(4, 0, 2'500ms, 15s));
    CHECK(client.check(15s, 2) == rejected(4, 0, 5s, 15s));
    CHECK(client.check(15s, 3) == rejected(4, 0, 10s, 15s));
    CHECK(client.check(15s, 4) == rejected(4, 0, 15s, 15s));
}

TEST_CASE("staggered windows begin at the key's phase, modulo the window") {
    const SlidingWindow staggered{.limit = 1, .window = 10s, .align = Align::staggered};
    for (const penstock::Micros phase : {4'000'000ULL, 14'000'000ULL}) {
        CAPTURE(phase);
        Client client(staggered, phase);
        CHECK(client.check(0s) == allowed(1, 0, 14s));
        CHECK(client.check(13'999'999us) == rejected(1, 0, 1us, 1us));
        CHECK(client.check(14s) == allowed(1, 0, 20s));
    }
}

TEST_CASE("windows aligned to the epoch do not look at the phase") {
    Client client(SlidingWindow{.limit = 1, .window = 10s}, 4'000'000);
    CHECK(client.check(0s) == allowed(1, 0, 20s));
}

TEST_CASE("a cost of zero is allowed and changes nothing") {
    Client client(SlidingWindow{.limit = 2, .window = 10s});
    CHECK(client.check(1s, 2).allowed);
    const auto before = client.state();
    CHECK(client.check(4s, 0) == allowed(2, 0, 16s));
    CHECK(client.check(15s, 0) == allowed(2, 1, 5s));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a cost above the limit never passes and changes nothing") {
    Client client(SlidingWindow{.limit = 2, .window = 10s});
    CHECK(client.check(1s, 3) == rejected(2, 2, never, 0us));
    CHECK(client.check(1s, largest_cost) == rejected(2, 2, never, 0us));
    CHECK(same_bits(client.state(), SlidingWindow::State{}));
    CHECK(client.check(1s, 1).allowed);
    CHECK(client.check(1s, 3) == rejected(2, 1, never, 19s));
    CHECK(client.check(1s, largest_cost) == rejected(2, 1, never, 19s));
}

TEST_CASE("a rejection leaves every bit as it was") {
    Client client(SlidingWindow{.limit = 10, .window = 10s});
    CHECK(client.check(5s, 8).allowed);
    const auto before = client.state();
    CHECK(client.check(6s, 3) == rejected(10, 2, 5'250ms, 14s));
    CHECK(client.check(10s, 3) == rejected(10, 2, 1'250ms, 10s));
    CHECK(client.check(0s, 3) == rejected(10, 2, 11'250ms, 20s));
    client.use(SlidingWindow{.limit = 1, .window = 20s});
    CHECK(client.check(6s, 1).allowed == false);
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a clock that goes back forgets nothing") {
    Client client(SlidingWindow{.limit = 1, .window = 10s});
    CHECK(client.check(25s) == allowed(1, 0, 15s));
    CHECK(client.check(0s) == rejected(1, 0, 40s, 40s));
    CHECK(client.check(39'999'999us) == rejected(1, 0, 1us, 1us));
    CHECK(client.check(40s) == allowed(1, 0, 20s));
}

TEST_CASE("a larger limit helps a blocked client at once, a smaller one shows no less than nothing") {
    Client client(SlidingWindow{.limit = 3, .window = 10s});
    CHECK(client.check(1s, 3).allowed);
    client.use(SlidingWindow{.limit = 5, .window = 10s});
    CHECK(client.check(1s, 1) == allowed(5, 1, 19s));
    client.use(SlidingWindow{.limit = 2, .window = 10s});
    CHECK(client.check(1s, 0) == allowed(2, 0, 19s));
    CHECK(client.check(1s, 1) == rejected(2, 0, 16'500ms, 19s));  // a quarter of four is one
}

TEST_CASE("under a window of another length both counts become one, as they weighed at the stamp") {
    Client client(SlidingWindow{.limit = 10, .window = 10s});
    CHECK(client.check(0s, 9).allowed);
    CHECK(client.check(14s, 2) == allowed(10, 2, 16s));  // 5.4 of the nine, and two

    // Six and two, in the minute that holds the stamp, whenever it is asked.
    client.use(SlidingWindow{.limit = 10, .window = 1min});
    CHECK(client.check(14s, 0) == allowed(10, 2, 106s));
    CHECK(client.check(59s, 0) == allowed(10, 2, 61s));
    CHECK(client.check(90s, 0) == allowed(10, 6, 30s));
    CHECK(client.check(120s, 0) == allowed(10, 10, 0us));

    // In the seconds 12 to 15 of windows of three.
    client.use(SlidingWindow{.limit = 10, .window = 3s});
    CHECK(client.check(14s, 0) == allowed(10, 2, 4s));
    CHECK(client.check(16'500ms, 0) == allowed(10, 6, 1'500ms));
    CHECK(client.check(18s, 0) == allowed(10, 10, 0us));

    // Asking has stored nothing.
    client.use(SlidingWindow{.limit = 10, .window = 10s});
    CHECK(client.check(14s, 0) == allowed(10, 2, 16s));
}

TEST_CASE("under a longer window retry_after is exact though a rejection writes nothing") {
    Client client(SlidingWindow{.limit = 10, .window = 10s});
    CHECK(client.check(0s, 9).allowed);
    CHECK(client.check(14s, 4).allowed);
    client.use(SlidingWindow{.limit = 10, .window = 1min});
    const auto rejection = client.check(14s, 5);
    CHECK(rejection == rejected(10, 0, 76s, 106s));
    CHECK(client.check(90s - 1us, 5) == rejected(10, 4, 1us, 30s + 1us));
    CHECK(client.check(90s, 5) == allowed(10, 0, 90s));
}

TEST_CASE("a refund gives back to the present window only, and never more than was taken in it") {
    Client client(SlidingWindow{.limit = 5, .window = 10s});
    CHECK(client.check(1s, 4).allowed);
    CHECK(client.refund(2s, 3) == allowed(5, 4, 18s));
    CHECK(client.refund(2s, largest_cost) == allowed(5, 5, 0us));
    CHECK(client.check(2s, 5) == allowed(5, 0, 18s));

    const auto before = client.state();
    CHECK(client.refund(10s, 2) == allowed(5, 0, 10s));
    CHECK(client.refund(2s, 0) == allowed(5, 0, 18s));
    CHECK(same_bits(client.state(), before));

    CHECK(client.check(14s, 2) == allowed(5, 0, 16s));
    CHECK(client.refund(14s, largest_cost) == allowed(5, 2, 6s));
}

TEST_CASE("a charge takes past the limit until twice the limit weighs") {
    Client client(SlidingWindow{.limit = 4, .window = 10s});
    CHECK(client.charge(0s, 4) == allowed(4, 0, 20s));
    CHECK(client.charge(0s, largest_cost) == rejected(4, 0, 15s, 20s));
    CHECK(client.check(0s, 1) == rejected(4, 0, 16'250ms, 20s));

    // Eight weigh four at half the next window, so four more have room.
    CHECK(client.charge(15s, 0) == allowed(4, 0, 5s));
    CHECK(client.charge(15s, largest_cost) == rejected(4, 0, 5s, 15s));
    CHECK(client.refund(15s, 4) == allowed(4, 0, 5s));
    CHECK(client.check(15s, 1) == rejected(4, 0, 1'250ms, 5s));
}

TEST_CASE("a charged client is within its limit by weight, not by whole units") {
    Client client(SlidingWindow{.limit = 4, .window = 10s});
    CHECK(client.charge(0s, 8) == rejected(4, 0, 15s, 20s));
    CHECK(client.charge(14'999'999us, 0) == rejected(4, 0, 1us, 5'000'001us));
    CHECK(client.charge(15s, 0) == allowed(4, 0, 5s));
}

TEST_CASE("a charge of nothing changes nothing") {
    Client client(SlidingWindow{.limit = 4, .window = 10s});
    CHECK(client.charge(0s, 7) == rejected(4, 0, 14'285'715us, 20s));
    const auto before = client.state();
    CHECK(client.charge(4s, 0) == rejected(4, 0, 10'285'715us, 16s));
    CHECK(client.charge(20s, 0) == allowed(4, 4, 0us));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a charge adds nothing where a smaller limit is exceeded twice already") {
    Client client(SlidingWindow{.limit = 5, .window = 10s});
    CHECK(client.check(1s, 5).allowed);
    client.use(SlidingWindow{.limit = 2, .window = 10s});
    CHECK_FALSE(client.charge(1s, 1).allowed);
    client.use(SlidingWindow{.limit = 6, .window = 10s});
    CHECK(client.check(1s, 0) == allowed(6, 1, 19s));
}

TEST_CASE("the largest limit in the longest window is weighed to the unit and microsecond") {
    Client client(SlidingWindow{.limit = largest_limit, .window = longest_period});
    CHECK(client.check(0us, largest_limit) == allowed(largest_limit, 0, 2 * longest_period));
    // A unit of 2^39 leaves a window of 2^45 us with every 64th microsecond.
    CHECK(client.check(0us, 1) == rejected(largest_limit, 0, longest_period + 64us, 2 * longest_period));
    CHECK(client.check(longest_period + 63us, 1) == rejected(largest_limit, 0, 1us, longest_period - 63us));
    CHECK(client.check(longest_period + 64us, 1) == allowed(largest_limit, 0, 2 * longest_period - 64us));
    CHECK(client.charge(longest_period + 64us, largest_cost) ==
          rejected(largest_limit, 0, longest_period, 2 * longest_period - 64us));
}

TEST_CASE("a window of one microsecond slides with every one") {
    Client client(SlidingWindow{.limit = 2, .window = 1us});
    CHECK(client.check(0us, 2) == allowed(2, 0, 2us));
    CHECK(client.check(0us, 1) == rejected(2, 0, 2us, 2us));
    CHECK(client.check(1us, 1) == rejected(2, 0, 1us, 1us));
    CHECK(client.check(2us, 2) == allowed(2, 0, 2us));
}

TEST_CASE("the last moment has its window") {
    Client client(SlidingWindow{.limit = 1, .window = longest_period});  // 2^53 is a multiple of it
    CHECK(client.check(last_moment) == allowed(1, 0, longest_period + 1us));
    CHECK(client.check(0us) == rejected(1, 0, last_moment + longest_period + 1us, last_moment + longest_period + 1us));
}

constexpr SlidingWindow valid{.limit = 3, .window = 1h};

TEST_CASE("a limit of nothing, or of more than 2^39, is refused") {
    CHECK(refusal({.limit = 0, .window = 1s}, valid) == "SlidingWindow.limit is 0: allowed is 1 to 549755813888");
    CHECK(refusal({.limit = largest_limit + 1, .window = 1s}, valid) ==
          "SlidingWindow.limit is 549755813889: allowed is 1 to 549755813888");
}

TEST_CASE("a window of no time, of less, or of more than 2^45 us, is refused") {
    CHECK(refusal({.limit = 1}, valid) == "SlidingWindow.window is 0 us: allowed is 1 us to 35184372088832 us");
    CHECK(refusal({.limit = 1, .window = -1us}, valid) ==
          "SlidingWindow.window is -1 us: allowed is 1 us to 35184372088832 us");
    CHECK(refusal({.limit = 1, .window = longest_period + one_us}, valid) ==
          "SlidingWindow.window is 35184372088833 us: allowed is 1 us to 35184372088832 us");
}

TEST_CASE("an alignment that is none is refused") {
    CHECK(refusal({.limit = 1, .window = 1s, .align = static_cast<Align>(2)}, valid) ==
          "SlidingWindow.align is 2: allowed is Align::epoch or Align::staggered");
}

TEST_CASE("a plan gives back the parameters it was made of") {
    const SlidingWindow window{.limit = 20, .window = 24h, .align = Align::staggered};
    CHECK(penstock::plan(window).algorithm() == window);
    CHECK(penstock::plan(window).staggered());
    CHECK_FALSE(penstock::plan(valid).staggered());
}

}  // namespace
