// SPDX-License-Identifier: MIT
// When a breaker opens, what it lets through while it is open, and when it closes.
#include <penstock/guard/breaker.hpp>

#include "../../support/random.hpp"
#include "../../support/refusal.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Breaker;
using penstock::BreakerOptions;
using penstock::Micros;
using penstock::Pass;
using penstock::StoreError;
using support::Random;
using support::text_of;

constexpr Micros second = 1'000'000;

void fail(Breaker& breaker, Micros now, int times) {
    for (int i = 0; i < times; ++i) {
        breaker.failed(now, 0);
    }
}

/// Opened at that time, with the probe due a whole interval later.
Breaker opened_at(Micros now) {
    Breaker breaker{BreakerOptions{}};
    fail(breaker, now, 5);
    REQUIRE(breaker.open());
    return breaker;
}

TEST_CASE("it opens with the last of so many failures within the window, and not before") {
    Breaker breaker{BreakerOptions{}};
    fail(breaker, 0, 4);
    CHECK_FALSE(breaker.open());
    CHECK(breaker.ask(0, 0) == Pass::granted);
    breaker.failed(999'999, 0);
    CHECK(breaker.open());
}

TEST_CASE("failures of longer ago do not count") {
    Breaker breaker{BreakerOptions{}};
    fail(breaker, 99'999, 4);
    breaker.failed(second, 0);  // the tenth before the last nine is over
    CHECK_FALSE(breaker.open());
    fail(breaker, second, 3);
    CHECK_FALSE(breaker.open());
    breaker.failed(second, 0);
    CHECK(breaker.open());
}

TEST_CASE("few failures among many calls are no reason to open") {
    Breaker breaker{BreakerOptions{}};
    breaker.succeeded(0, 46);
    fail(breaker, 0, 5);  // 5 of 51
    CHECK_FALSE(breaker.open());
    breaker.failed(0, 0);  // 6 of 52
    CHECK(breaker.open());
}

TEST_CASE("calls of longer ago are no excuse") {
    Breaker breaker{BreakerOptions{}};
    breaker.succeeded(0, 1'000'000);
    fail(breaker, second, 4);
    CHECK_FALSE(breaker.open());
    breaker.failed(second, 0);
    CHECK(breaker.open());
}

TEST_CASE("open, it refuses until a probe is due, and then lets one call through in an interval") {
    Breaker breaker = opened_at(10 * second);
    CHECK(breaker.probe_at() == 15 * second);
    CHECK(breaker.ask(10 * second, 0) == Pass::refused);
    CHECK(breaker.ask(15 * second - 1, 0) == Pass::refused);
    CHECK(breaker.ask(15 * second, 0) == Pass::probe);
    CHECK(breaker.ask(15 * second, 0) == Pass::refused);
    CHECK(breaker.ask(20 * second - 1, 0) == Pass::refused);
    CHECK(breaker.ask(20 * second, 0) == Pass::probe);
}

TEST_CASE("a probe that succeeds closes it, and it begins to count anew") {
    Breaker breaker = opened_at(0);
    CHECK(breaker.ask(5 * second, 0) == Pass::probe);
    breaker.probed(true);
    CHECK_FALSE(breaker.open());
    CHECK(breaker.ask(5 * second, 0) == Pass::granted);
    fail(breaker, 5 * second, 4);
    CHECK_FALSE(breaker.open());
}

TEST_CASE("a probe that fails leaves it open for a whole interval") {
    Breaker breaker = opened_at(0);
    CHECK(breaker.ask(5 * second, 0) == Pass::probe);
    breaker.probed(false);
    CHECK(breaker.open());
    CHECK(breaker.ask(10 * second - 1, 0) == Pass::refused);
    CHECK(breaker.ask(10 * second, 0) == Pass::probe);
}

TEST_CASE("what comes back from before it opened changes nothing") {
    Breaker breaker = opened_at(0);
    breaker.succeeded(1, 100);
    fail(breaker, 4 * second, 100);
    CHECK(breaker.open());
    CHECK(breaker.probe_at() == 5 * second);
}

TEST_CASE("probes come up to a fifth of the interval early, and never late") {
    Random random(1);
    Micros least = ~Micros{0};
    Micros most = 0;
    for (int i = 0; i < 10'000; ++i) {
        Breaker breaker{BreakerOptions{.failures = 1}};
        breaker.failed(0, random.bits());
        least = (std::min)(least, breaker.probe_at());
        most = (std::max)(most, breaker.probe_at());
    }
    CHECK(least >= 4 * second);
    CHECK(least < 4 * second + second / 100);
    CHECK(most <= 5 * second);
    CHECK(most > 5 * second - second / 100);
}

TEST_CASE("a time that goes back counts as standing still") {
    Breaker breaker{BreakerOptions{}};
    fail(breaker, 10 * second, 4);
    breaker.failed(0, 0);
    CHECK(breaker.open());
}

TEST_CASE(
    "only errors of the node are failures, not those of one key or of what is not taken, nor what never got there") {
    using enum StoreError;
    using penstock::detail::Health;
    using penstock::detail::health_of;
    for (const StoreError error : {unavailable, timeout, overloaded, protocol_error, loading, busy, cluster_down}) {
        CHECK(health_of(error) == Health::unwell);
    }
    for (const StoreError error : {none, wrong_type, newer_format, cross_slot, moved, ask, try_again, out_of_memory}) {
        CHECK(health_of(error) == Health::well);
    }
    CHECK(health_of(shut_down) == Health::unknown);
    CHECK(health_of(breaker_open) == Health::unknown);
}

TEST_CASE("a probe that did not get there is made again with the next call") {
    Breaker breaker = opened_at(0);
    CHECK(breaker.ask(5 * second, 0) == Pass::probe);
    breaker.probe_again(6 * second);
    CHECK(breaker.open());
    CHECK(breaker.ask(6 * second, 0) == Pass::probe);
    CHECK(breaker.ask(6 * second, 0) == Pass::refused);
}

TEST_CASE("options out of range are refused by name") {
    const auto validate = [](const BreakerOptions& options) { penstock::detail::validate_breaker(options); };
    CHECK(text_of([&] { validate({.failures = 0}); }) == "Breaker.failures is 0: allowed is 1 to 1000000");
    CHECK(text_of([&] { validate({.window = 9us}); }) == "Breaker.window is 9 us: allowed is 10 us to 3600000000 us");
    CHECK(text_of([&] { validate({.percent = 101}); }) == "Breaker.percent is 101: allowed is 0 to 100");
    CHECK(text_of([&] { validate({.slow = 0us}); }) == "Breaker.slow is 0 us: allowed is 1 us to 3600000000 us");
    CHECK(text_of([&] { validate({.probe_interval = 2h}); }) ==
          "Breaker.probe_interval is 7200000000 us: allowed is 1 us to 3600000000 us");
}

/// The same, by remembering all that happened.
class Plain {
public:
    explicit Plain(const BreakerOptions& options) : options_(options) {}

    Pass ask(Micros now, std::uint64_t random) {
        if (!open_) return Pass::granted;
        if (now < probe_at_) return Pass::refused;
        probe_at_ = now + jittered(random);
        return Pass::probe;
    }

    void answered(Micros now, bool well, std::uint64_t random) {
        if (open_) return;
        calls_.push_back({tenth(now), well});
        if (well) return;
        const auto counts = [&](const Call& call) { return call.tenth + 10 > tenth(now); };
        const auto failed = [&](const Call& call) { return counts(call) && !call.well; };
        const auto calls = static_cast<std::uint64_t>(std::count_if(calls_.begin(), calls_.end(), counts));
        const auto failures = static_cast<std::uint64_t>(std::count_if(calls_.begin(), calls_.end(), failed));
        if (failures >= options_.failures && 100 * failures >= options_.percent * calls) {
            open_ = true;
            probe_at_ = now + jittered(random);
        }
        std::erase_if(calls_, [&](const Call& call) { return !counts(call); });
    }

    void probed(bool well) {
        if (well && open_) {
            open_ = false;
            calls_.clear();
        }
    }

    [[nodiscard]] bool open() const { return open_; }

private:
    struct Call {
        Micros tenth;
        bool well;
    };

    [[nodiscard]] Micros tenth(Micros now) const { return now / (static_cast<Micros>(options_.window.count()) / 10); }
    [[nodiscard]] Micros jittered(std::uint64_t random) const {
        const auto full = static_cast<Micros>(options_.probe_interval.count());
        return full - random % (full / 5 + 1);
    }

    BreakerOptions options_;
    bool open_ = false;
    Micros probe_at_ = 0;
    std::vector<Call> calls_;
};

BreakerOptions any_options(Random& random) {
    return {.failures = random.between(1, 8),
            .window = std::chrono::microseconds{random.between(10, 3000)},
            .percent = static_cast<unsigned>(random.below(101)),
            .probe_interval = std::chrono::microseconds{random.between(1, 3000)}};
}

TEST_CASE("over a million random steps it does what is written of it") {
    constexpr std::uint64_t seed = 20261;
    CAPTURE(seed);
    Random random(seed);
    std::uint64_t openings = 0;
    std::uint64_t closings = 0;
    std::uint64_t mistakes = 0;
    for (int trace = 0; trace < 10'000; ++trace) {
        const BreakerOptions options = any_options(random);
        Breaker breaker{options};
        Plain plain{options};
        const std::uint64_t failing = random.below(101);
        Micros now = random.below(second);
        for (int step = 0; step < 100; ++step) {
            now += random.one_of({0, 1, 20, 300, 3000}) * random.below(3);
            const bool was_open = plain.open();
            const std::uint64_t bits = random.bits();
            const Pass pass = breaker.ask(now, bits);
            mistakes += pass == plain.ask(now, bits) ? 0 : 1;
            const bool well = !random.chance(failing);
            if (pass == Pass::probe) {
                breaker.probed(well);
                plain.probed(well);
            } else if (well) {
                breaker.succeeded(now, 1);
                plain.answered(now, true, bits);
            } else {
                breaker.failed(now, bits);
                plain.answered(now, false, bits);
            }
            mistakes += breaker.open() == plain.open() ? 0 : 1;
            openings += !was_open && plain.open() ? 1 : 0;
            closings += was_open && !plain.open() ? 1 : 0;
        }
    }
    CHECK(mistakes == 0);
    CHECK(openings > 10'000);
    CHECK(closings > 1'000);
}

}  // namespace
