// SPDX-License-Identifier: MIT
// Servers that are killed, hang, start again or were never there: checks end in time, and service comes back.
#include "../support/fault.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/socket.h>

namespace {

using namespace std::chrono_literals;
using fault::await;
using fault::Load;
using fault::open_files;
using fault::options_of;
using fault::Watched;
using penstock::Decision;
using penstock::Layout;
using penstock::Source;
using penstock::StoreError;
using support::RedisServer;

TEST_CASE("a server that is killed is missed, and used again when it is back") {
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        RedisServer server;
        auto options = options_of(server.port());
        options.layout = layout;
        Watched watched(options);
        const Load load(watched);
        for (int round = 0; round < 3; ++round) {
            REQUIRE(watched.recovers());
            server.kill();
            CHECK(watched.fails_with(StoreError::unavailable));
            CHECK(watched.check().source == Source::fail_open);
            server.restart();
            // One attempt may have been under way; the next one, a back-off later at most, finds the server.
            const auto connects = watched.stats().connects;
            CHECK(watched.recovers());
            CHECK(watched.stats().connects <= connects + 2);
        }
        CHECK(watched.stats().losses == 3);
        CHECK(watched.stats().connects >= 4);
    }
}

TEST_CASE("a connection that breaks while nobody asks is made again before somebody does") {
    RedisServer server;
    Watched watched(options_of(server.port()));
    for (int round = 1; round <= 5; ++round) {
        REQUIRE(watched.recovers());
        const auto losses = watched.stats().losses;
        support::RedisClient(server.port())("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
        CHECK(await([&] { return watched.stats().losses == losses + 1; }));
        CHECK(await([&] { return watched.stats().connects == losses + 2; }));
    }
    server.restart();
    CHECK(watched.recovers());
}

TEST_CASE("a server that hangs costs each call its timeout, at most, and is used again when it goes on") {
    RedisServer server;
    Watched watched(options_of(server.port()));
    REQUIRE(watched.recovers());
    const Load load(watched);
    server.stop();
    CHECK(watched.fails_with(StoreError::timeout));
    // Silence is a loss, and new connections hang as well: then calls fail at once.
    CHECK(await([&] { return watched.stats().connects >= 3; }));
    const auto begin = fault::Clock::now();
    for (int i = 0; i < 100; ++i) {
        CHECK(watched.check().source == Source::fail_open);
    }
    CHECK(fault::Clock::now() - begin < 100 * 50ms);
    server.resume();
    CHECK(watched.recovers());
    CHECK(watched.stats().losses >= 1);
}

TEST_CASE("a server that hangs for a moment costs no connection") {
    RedisServer server;
    auto options = options_of(server.port());
    options.timeout = 10ms;
    options.stall_timeout = 20s;
    Watched watched(options);
    REQUIRE(watched.recovers());
    server.stop();
    CHECK(watched.fails_with(StoreError::timeout));
    server.resume();
    CHECK(watched.recovers());
    CHECK(await([&] { return watched.stats().late >= 1; }));
    CHECK(watched.stats().losses == 0);
    CHECK(watched.stats().connects == 1);
}

TEST_CASE("a check that timed out was made once") {
    RedisServer server;
    auto options = options_of(server.port());
    options.stall_timeout = 20s;
    Watched watched(options);
    REQUIRE(watched.recovers());
    server.stop();
    CHECK(watched.check("once").source == Source::fail_open);
    server.resume();
    CHECK(await([&] { return watched.stats().late == 1; }));
    CHECK(watched.limiter().peek("once", 0).remaining == fault::limit - 1);
}

TEST_CASE("nobody at the port is a failure at once, by the policy") {
    for (const bool allow : {true, false}) {
        auto options = options_of(support::free_port());
        options.on_failure = allow ? penstock::RedisStorage::OnFailure(penstock::Allow{})
                                   : penstock::RedisStorage::OnFailure(penstock::Deny{});
        Watched watched(options);
        for (int i = 0; i < 1000; ++i) {
            const Decision decision = watched.check();
            CHECK(decision.allowed == allow);
            CHECK(decision.source == (allow ? Source::fail_open : Source::fail_closed));
        }
        CHECK(watched.ended(StoreError::unavailable) == 1000);
        CHECK(watched.stats().sent == 0);
    }
}

TEST_CASE("a server that comes later than its clients is found") {
    RedisServer server;
    server.kill();
    Watched watched(options_of(server.port()));
    CHECK(watched.fails_with(StoreError::unavailable));
    server.restart();
    CHECK(watched.recovers());
}

TEST_CASE("10,000 connects that are refused leave no file open") {
    auto options = options_of(support::free_port());
    options.longest_wait = 1ms;
    options.url = "redis+ring://";
    for (int i = 0; i < 20; ++i) {
        options.url += (i > 0 ? "," : "") + std::string("127.0.0.") + std::to_string(i + 1) + ":" +
                       std::to_string(support::free_port());
    }
    const std::ptrdiff_t before = open_files();
    {
        Watched watched(options);
        (void)watched.check();
        const std::ptrdiff_t started = open_files();
        CHECK(started <= before + 2 + 20);
        CHECK(await([&] { return watched.stats().connects >= 10'000; }));
        CHECK(open_files() <= before + 2 + 20);
        CHECK(watched.stats().losses == 0);
    }
    CHECK(open_files() == before);
}

TEST_CASE("engines that come and go, their server too, leave no file open") {
    RedisServer server;
    const std::ptrdiff_t before = open_files();
    for (int round = 0; round < 10; ++round) {
        Watched watched(options_of(server.port()));
        CHECK(watched.recovers());
        if (round % 3 == 0) {
            server.kill();
            CHECK(watched.fails_with(StoreError::unavailable));
            server.restart();
        }
    }
    CHECK(open_files() == before);
}

TEST_CASE("a dying server raises no signal, and the host's handling of it stays") {
    struct sigaction action {};
    REQUIRE(::sigaction(SIGPIPE, nullptr, &action) == 0);
    REQUIRE((action.sa_handler == SIG_DFL));
    RedisServer server;
    Watched watched(options_of(server.port()));
    REQUIRE(watched.recovers());
    for (int round = 0; round < 3; ++round) {
        server.kill();
        for (int i = 0; i < 1000; ++i) {
            CHECK(watched.check().source == Source::fail_open);
        }
        server.restart();
        CHECK(watched.recovers());
    }
    REQUIRE(::sigaction(SIGPIPE, nullptr, &action) == 0);
    CHECK((action.sa_handler == SIG_DFL));
}

}  // namespace
