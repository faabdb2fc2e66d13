// SPDX-License-Identifier: MIT
#include <penstock/algorithm/fixed_window.hpp>

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
using penstock::FixedWindow;
using penstock::never;
using support::allowed;
using support::largest_limit;
using support::last_moment;
using support::longest_period;
using support::one_us;
using support::refusal;
using support::rejected;
using support::same_bits;
using Client = support::Client<FixedWindow>;

constexpr std::uint64_t largest_cost = (std::numeric_limits<std::uint64_t>::max)();

TEST_CASE("windows begin at multiples of their length since the epoch, not at the first request") {
    Client client(FixedWindow{.limit = 3, .window = 10s});
    CHECK(client.check(8s, 0) == allowed(3, 3, 0us));
    CHECK(client.check(8s, 2) == allowed(3, 1, 2s));
    CHECK(client.check(9s, 1) == allowed(3, 0, 1s));
    CHECK(client.check(9'999'999us, 1) == rejected(3, 0, 1us, 1us));
    CHECK(client.check(10s, 3) == allowed(3, 0, 10s));
    CHECK(client.check(10s, 1) == rejected(3, 0, 10s, 10s));
}

TEST_CASE("a fixed window decides at compile time") {
    constexpr auto third = [] {
        Client client(FixedWindow{.limit = 2, .window = 10s});
        (void)client.check(1s);
        (void)client.check(2s);
        return client.check(3s);
    }();
    static_assert(third == rejected(2, 0, 7s, 7s));
    CHECK(third == rejected(2, 0, 7s, 7s));
}

TEST_CASE("an offset moves every boundary") {
    Client client(FixedWindow{.limit = 1, .window = 10s, .offset = 3s});
    CHECK(client.check(0s) == allowed(1, 0, 3s));
    CHECK(client.check(2'999'999us) == rejected(1, 0, 1us, 1us));
    CHECK(client.check(3s) == allowed(1, 0, 10s));
    CHECK(client.check(12s) == rejected(1, 0, 1s, 1s));
}

TEST_CASE("a negative offset moves every boundary to earlier") {
    Client client(FixedWindow{.limit = 1, .window = 10s, .offset = -3s});
    CHECK(client.check(0s) == allowed(1, 0, 7s));
    CHECK(client.check(6'999'999us) == rejected(1, 0, 1us, 1us));
    CHECK(client.check(7s) == allowed(1, 0, 10s));
}

TEST_CASE("an offset counts modulo the window") {
    for (const auto offset : {3s, 13s, 10'000'003s, -7s, -17s, -9'999'997s}) {
        CAPTURE(offset.count());
        Client client(FixedWindow{.limit = 1, .window = 10s, .offset = offset});
        CHECK(client.check(0s) == allowed(1, 0, 3s));
        CHECK(client.check(3s) == allowed(1, 0, 10s));
    }
    for (const auto offset : {0s, 10s, -10s, 1'000s}) {
        CAPTURE(offset.count());
        Client client(FixedWindow{.limit = 1, .window = 10s, .offset = offset});
        CHECK(client.check(0s) == allowed(1, 0, 10s));
    }
}

TEST_CASE("staggered windows begin at the key's phase, modulo the window") {
    const FixedWindow staggered{.limit = 1, .window = 10s, .align = Align::staggered};
    for (const penstock::Micros phase : {4'000'000ULL, 14'000'000ULL, 9'007'199'254'000'000ULL}) {
        CAPTURE(phase);
        Client client(staggered, phase);
        CHECK(client.check(0s) == allowed(1, 0, 4s));
        CHECK(client.check(3'999'999us) == rejected(1, 0, 1us, 1us));
        CHECK(client.check(4s) == allowed(1, 0, 10s));
    }
    Client last(staggered, static_cast<penstock::Micros>(last_moment.count()));  // 0.740991 s into a window
    CHECK(last.check(0s) == allowed(1, 0, 4'740'991us));
}

TEST_CASE("offset and phase add up") {
    Client client(FixedWindow{.limit = 1, .window = 10s, .align = Align::staggered, .offset = -3s}, 4'000'000);
    CHECK(client.check(0s) == allowed(1, 0, 1s));
    CHECK(client.check(1s) == allowed(1, 0, 10s));
}

TEST_CASE("windows aligned to the epoch do not look at the phase") {
    Client client(FixedWindow{.limit = 1, .window = 10s}, 4'000'000);
    CHECK(client.check(0s) == allowed(1, 0, 10s));
}

TEST_CASE("a cost of zero is allowed and changes nothing") {
    Client client(FixedWindow{.limit = 2, .window = 10s});
    CHECK(client.check(1s, 2).allowed);
    const auto before = client.state();
    CHECK(client.check(4s, 0) == allowed(2, 0, 6s));
    CHECK(client.check(14s, 0) == allowed(2, 2, 0us));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a cost above the limit never passes and changes nothing") {
    Client client(FixedWindow{.limit = 2, .window = 10s});
    CHECK(client.check(1s, 3) == rejected(2, 2, never, 0us));
    CHECK(client.check(1s, largest_cost) == rejected(2, 2, never, 0us));
    CHECK(same_bits(client.state(), FixedWindow::State{}));
    CHECK(client.check(1s, 1).allowed);
    CHECK(client.check(1s, 3) == rejected(2, 1, never, 9s));
    CHECK(client.check(1s, largest_cost) == rejected(2, 1, never, 9s));
}

TEST_CASE("a rejection leaves every bit as it was") {
    Client client(FixedWindow{.limit = 3, .window = 10s});
    CHECK(client.check(5s, 2).allowed);
    const auto before = client.state();
    CHECK(client.check(6s, 2) == rejected(3, 1, 4s, 4s));
    CHECK(client.check(0s, 2) == rejected(3, 1, 10s, 10s));
    client.use(FixedWindow{.limit = 1, .window = 20s});
    CHECK(client.check(6s, 1) == rejected(1, 0, 14s, 14s));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a clock that goes back opens no window twice") {
    Client client(FixedWindow{.limit = 1, .window = 10s});
    CHECK(client.check(25s) == allowed(1, 0, 5s));
    CHECK(client.check(14s) == rejected(1, 0, 16s, 16s));
    CHECK(client.check(29'999'999us) == rejected(1, 0, 1us, 1us));
    CHECK(client.check(30s) == allowed(1, 0, 10s));
}

TEST_CASE("a larger limit helps a blocked client at once, a smaller one shows no less than nothing") {
    Client client(FixedWindow{.limit = 3, .window = 10s});
    CHECK(client.check(1s, 3).allowed);
    client.use(FixedWindow{.limit = 5, .window = 10s});
    CHECK(client.check(1s, 1) == allowed(5, 1, 9s));
    client.use(FixedWindow{.limit = 2, .window = 10s});
    CHECK(client.check(1s, 0) == allowed(2, 0, 9s));
    CHECK(client.check(1s, 1) == rejected(2, 0, 9s, 9s));
}

TEST_CASE("under a window of another length the count is of the window that holds the stamp") {
    Client client(FixedWindow{.limit = 3, .window = 10s});
    CHECK(client.check(14s, 2).allowed);

    client.use(FixedWindow{.limit = 3, .window = 1min});
    CHECK(client.check(59s, 0) == allowed(3, 1, 1s));
    CHECK(client.check(60s, 0) == allowed(3, 3, 0us));
    client.use(FixedWindow{.limit = 3, .window = 3s});  // the stamp is in 12 s to 15 s
    CHECK(client.check(14'999'999us, 0) == allowed(3, 1, 1us));
    CHECK(client.check(15s, 0) == allowed(3, 3, 0us));
    client.use(FixedWindow{.limit = 3, .window = 10s, .offset = 5s});  // of the same length, but elsewhere
    CHECK(client.check(14'999'999us, 0) == allowed(3, 1, 1us));
    CHECK(client.check(15s, 0) == allowed(3, 3, 0us));
}

TEST_CASE("a refund gives back to the present window only, and never more than was taken in it") {
    Client client(FixedWindow{.limit = 5, .window = 10s});
    CHECK(client.check(1s, 4).allowed);
    CHECK(client.refund(2s, 3) == allowed(5, 4, 8s));
    CHECK(client.refund(2s, largest_cost) == allowed(5, 5, 0us));
    CHECK(client.check(2s, 5) == allowed(5, 0, 8s));

    const auto before = client.state();
    CHECK(client.refund(10s, 2) == allowed(5, 5, 0us));
    CHECK(client.refund(2s, 0) == allowed(5, 0, 8s));
    CHECK(same_bits(client.state(), before));
    CHECK(client.check(10s, 6) == rejected(5, 5, never, 0us));
}

TEST_CASE("a charge takes past the limit, up to twice the limit, until the window ends") {
    Client client(FixedWindow{.limit = 5, .window = 10s});
    CHECK(client.charge(1s, 5) == allowed(5, 0, 9s));
    CHECK(client.charge(2s, 1) == rejected(5, 0, 8s, 8s));
    CHECK(client.charge(2s, largest_cost) == rejected(5, 0, 8s, 8s));
    CHECK(client.refund(2s, 5) == allowed(5, 0, 8s));  // ten were taken, not eleven and not 2^64
    CHECK(client.refund(2s, 1) == allowed(5, 1, 8s));
    CHECK(client.charge(10s, 1) == allowed(5, 4, 10s));
}

TEST_CASE("a charge of nothing changes nothing") {
    Client client(FixedWindow{.limit = 5, .window = 10s});
    CHECK(client.charge(1s, 7) == rejected(5, 0, 9s, 9s));
    const auto before = client.state();
    CHECK(client.charge(4s, 0) == rejected(5, 0, 6s, 6s));
    CHECK(client.charge(12s, 0) == allowed(5, 5, 0us));
    CHECK(same_bits(client.state(), before));
}

TEST_CASE("a charge adds nothing where a smaller limit is exceeded twice already") {
    Client client(FixedWindow{.limit = 5, .window = 10s});
    CHECK(client.check(1s, 5).allowed);
    client.use(FixedWindow{.limit = 2, .window = 10s});
    CHECK(client.charge(1s, 1) == rejected(2, 0, 9s, 9s));
    client.use(FixedWindow{.limit = 6, .window = 10s});
    CHECK(client.check(1s, 0) == allowed(6, 1, 9s));
}

TEST_CASE("the largest limit in the longest window is counted to the unit and microsecond") {
    Client client(FixedWindow{.limit = largest_limit, .window = longest_period});
    CHECK(client.check(1us, largest_limit) == allowed(largest_limit, 0, longest_period - 1us));
    CHECK(client.check(longest_period - 1us, 1) == rejected(largest_limit, 0, 1us, 1us));
    CHECK(client.check(longest_period, largest_limit) == allowed(largest_limit, 0, longest_period));
    CHECK(client.charge(longest_period, largest_cost) == rejected(largest_limit, 0, longest_period, longest_period));
    CHECK(client.refund(longest_period, largest_limit) == allowed(largest_limit, 0, longest_period));
    CHECK(client.refund(longest_period, 1) == allowed(largest_limit, 1, longest_period));
}

TEST_CASE("a window of one microsecond ends with it") {
    Client client(FixedWindow{.limit = 1, .window = 1us});
    CHECK(client.check(0us) == allowed(1, 0, 1us));
    CHECK(client.check(0us) == rejected(1, 0, 1us, 1us));
    CHECK(client.check(1us) == allowed(1, 0, 1us));
}

TEST_CASE("the last moment has its window") {
    Client client(FixedWindow{.limit = 1, .window = longest_period});  // 2^53 is a multiple of it
    CHECK(client.check(last_moment) == allowed(1, 0, 1us));
    CHECK(client.check(0us) == rejected(1, 0, last_moment + 1us, last_moment + 1us));
}

TEST_CASE("offsets up to 2^45 us either way are allowed") {
    const auto boundary = [](std::chrono::microseconds offset) {
        Client client(FixedWindow{.limit = 1, .window = 1h, .offset = offset});
        return client.check(0us).reset_after;
    };
    const std::chrono::microseconds beyond = longest_period % 1h;
    CHECK(boundary(longest_period) == beyond);
    CHECK(boundary(-longest_period) == 1h - beyond);
}

constexpr FixedWindow valid{.limit = 3, .window = 1h};

TEST_CASE("a limit of nothing, or of more than 2^39, is refused") {
    CHECK(refusal({.limit = 0, .window = 1s}, valid) == "FixedWindow.limit is 0: allowed is 1 to 549755813888");
    CHECK(refusal({.limit = largest_limit + 1, .window = 1s}, valid) ==
          "FixedWindow.limit is 549755813889: allowed is 1 to 549755813888");
}

TEST_CASE("a window of no time, of less, or of more than 2^45 us, is refused") {
    CHECK(refusal({.limit = 1}, valid) == "FixedWindow.window is 0 us: allowed is 1 us to 35184372088832 us");
    CHECK(refusal({.limit = 1, .window = -1us}, valid) ==
          "FixedWindow.window is -1 us: allowed is 1 us to 35184372088832 us");
    CHECK(refusal({.limit = 1, .window = longest_period + one_us}, valid) ==
          "FixedWindow.window is 35184372088833 us: allowed is 1 us to 35184372088832 us");
}

TEST_CASE("an alignment that is none is refused") {
    CHECK(refusal({.limit = 1, .window = 1s, .align = static_cast<Align>(2)}, valid) ==
          "FixedWindow.align is 2: allowed is Align::epoch or Align::staggered");
}

TEST_CASE("an offset beyond 2^45 us either way is refused") {
    CHECK(refusal({.limit = 1, .window = 1s, .offset = longest_period + one_us}, valid) ==
          "FixedWindow.offset is 35184372088833 us: allowed is -35184372088832 us to 35184372088832 us");
    CHECK(refusal({.limit = 1, .window = 1s, .offset = -longest_period - one_us}, valid) ==
          "FixedWindow.offset is -35184372088833 us: allowed is -35184372088832 us to 35184372088832 us");
    CHECK(refusal({.limit = 1, .window = 1s, .offset = (std::chrono::microseconds::min)()}, valid) ==
          "FixedWindow.offset is -9223372036854775808 us: allowed is -35184372088832 us to 35184372088832 us");
}

TEST_CASE("a plan gives back the parameters it was made of") {
    const FixedWindow window{.limit = 20, .window = 24h, .align = Align::staggered, .offset = -2h};
    CHECK(penstock::plan(window).algorithm() == window);
    CHECK(penstock::plan(window).staggered());
    CHECK_FALSE(penstock::plan(valid).staggered());
}

}  // namespace
