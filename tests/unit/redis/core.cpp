// SPDX-License-Identifier: MIT
// An engine's core without any server: what ends at once, and what is told before it stops.
#include <penstock/redis/core.hpp>

#include <penstock/detail/os.hpp>

#include "../../support/await.hpp"
#include "../../support/echo.hpp"
#include "../../support/redis_server.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

namespace {

using penstock::StoreError;
using penstock::detail::steady_now;
using penstock::redis::Call;
using penstock::redis::Core;
using penstock::redis::Settings;
using support::CountedEcho;
using support::Echo;
using support::Tally;

/// Settings for a port where nobody is.
Settings nowhere() {
    return support::engine_settings(support::free_port());
}

TEST_CASE("calls fail at once where nobody is, waited for or not") {
    const auto core = Core::start(nowhere());
    Echo first(1);
    Echo second(2);
    const std::array<Call*, 2> calls{&first, &second};
    core->run(calls, steady_now().count() + 1'000'000);
    for (const Echo* echo : {&first, &second}) {
        CHECK(echo->error() == StoreError::unavailable);
        CHECK(echo->numbers().empty());
    }
    Tally tally;
    for (int i = 0; i < 100; ++i) {
        core->submit(*new CountedEcho(i, tally));
    }
    core->stop();
    CHECK(tally.failed == 100);
    const auto stats = core->stats();
    CHECK(stats.ended[static_cast<std::size_t>(StoreError::unavailable)] +
              stats.ended[static_cast<std::size_t>(StoreError::shut_down)] ==
          102);
    CHECK(stats.sent == 0);
}

TEST_CASE("a connection that is refused ends the calls that wait for it, not when the next attempt is due") {
    Settings settings = nowhere();
    settings.connection = {.connect_timeout = 60'000'000, .shortest_wait = 30'000'000, .longest_wait = 30'000'000};
    const auto core = Core::start(settings);
    const auto begin = std::chrono::steady_clock::now();
    Echo waited_for(1);
    Call* const call = &waited_for;
    core->run({&call, 1}, steady_now().count() + 20'000'000);
    CHECK(waited_for.error() == StoreError::unavailable);
    core->stop();
    const auto other = Core::start(settings);
    Tally tally;
    other->submit(*new CountedEcho(1, tally));
    CHECK(support::await([&] { return tally.failed == 1; }));
    other->stop();
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{15});  // of 30, and a busy machine
}

TEST_CASE("a core that was stopped finishes what is asked of it") {
    const auto core = Core::start(nowhere());
    core->stop();
    Echo echo(1);
    Call* const call = &echo;
    core->run({&call, 1}, steady_now().count() + 1'000'000);
    CHECK(echo.error() == StoreError::shut_down);
}

TEST_CASE("it goes on to look for its server while nobody asks") {
    Settings settings = nowhere();
    settings.connection.shortest_wait = 100;
    settings.connection.longest_wait = 1000;
    const auto core = Core::start(settings);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (core->stats().connects < 10 && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
    }
    CHECK(core->stats().connects >= 10);
    core->stop();
}

}  // namespace
