// SPDX-License-Identifier: MIT
// Servers that accept and then do as no server should: nothing hangs, nothing is believed, nothing is kept.
#include "../support/echo.hpp"
#include "../support/fake_server.hpp"
#include "../support/fault.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using fault::await;
using fault::Load;
using fault::options_of;
using fault::Watched;
using penstock::Decision;
using penstock::Layout;
using penstock::Source;
using penstock::StoreError;
using support::FakeServer;
using Connection = FakeServer::Connection;

/// Answers all commands of a connection alike.
FakeServer::Behaviour answers(std::string text) {
    return [text = std::move(text)](Connection& connection) {
        if (connection.greet()) {
            while (!connection.receive().empty() && connection.send(text)) {
            }
        }
    };
}

/// Answers the first command of a connection, and then nothing more.
FakeServer::Behaviour answers_once(std::string text) {
    return [text = std::move(text)](Connection& connection) {
        if (connection.greet() && !connection.receive().empty() && connection.send(text)) {
            connection.be_silent();
        }
    };
}

TEST_CASE("a server that accepts and says nothing is not waited for") {
    const FakeServer server([](Connection& connection) { connection.be_silent(); });
    Watched watched(options_of(server.port()));
    const Load load(watched);
    CHECK(watched.check().source == Source::fail_open);
    CHECK(watched.ended(StoreError::timeout) >= 1);
    CHECK(await([&] { return server.accepted() >= 3; }));
    // By now it is known, so that nobody waits any more.
    const auto begin = fault::Clock::now();
    for (int i = 0; i < 100; ++i) {
        CHECK(watched.check().source == Source::fail_open);
    }
    CHECK(fault::Clock::now() - begin < 100 * 50ms);
    CHECK(watched.stats().sent == 0);
}

TEST_CASE("half an answer and then silence is a connection that is given up") {
    for (const char* half : {":", ":12", "*3\r\n:1\r\n", "$10\r\nabc", "-ERR", "*3\r\n"}) {
        const FakeServer server(answers_once(half));
        Watched watched(options_of(server.port()));
        CHECK(watched.fails_with(StoreError::timeout));
        CHECK(await([&] {
            (void)watched.check();
            return watched.stats().losses >= 1;
        }));
        CHECK(await([&] { return server.accepted() >= 2; }));
        CHECK(watched.ended(StoreError::none) == 0);
    }
}

TEST_CASE("what is no reply ends the connection, as an error of the protocol") {
    for (const std::string& garbage : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"),
                                       std::string(1000, '\0'),
                                       std::string("\x16\x03\x01\x02"),
                                       std::string("*999999999999999999\r\n"),
                                       std::string(":12x\r\n"),
                                       std::string("$-7\r\n")}) {
        const FakeServer server(answers(garbage));
        Watched watched(options_of(server.port()));
        CHECK(watched.fails_with(StoreError::protocol_error));
        CHECK(watched.ended(StoreError::none) == 0);
        CHECK(watched.stats().losses >= 1);
    }
}

TEST_CASE("a reply that no script gives ends the connection: whose would the next one be?") {
    for (const char* reply : {"+OK\r\n",
                              "$-1\r\n",
                              "*-1\r\n",
                              "*2\r\n:1\r\n+x\r\n",
                              "*1\r\n*1\r\n:1\r\n",
                              "*9\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"}) {
        const FakeServer server(answers(reply));
        Watched watched(options_of(server.port()));
        CHECK(watched.fails_with(StoreError::protocol_error));
        CHECK(watched.stats().losses >= 1);
    }
}

TEST_CASE("numbers that are no decision are none") {
    for (const char* reply : {":-9223372036854775808\r\n",
                              "*0\r\n",
                              "*3\r\n:0\r\n:-1\r\n:0\r\n",
                              "*3\r\n:0\r\n:9000000000000000000\r\n:0\r\n"}) {
        const FakeServer server(answers(reply));
        Watched watched(options_of(server.port()));
        CHECK(watched.fails_with(StoreError::protocol_error));
        for (int i = 0; i < 10; ++i) {
            CHECK(watched.check().source == Source::fail_open);
        }
        CHECK(watched.ended(StoreError::none) == 0);
    }
}

TEST_CASE("a reply of 64 MiB is neither kept nor waited for") {
    const std::string mebibyte(std::size_t{1} << 20, 'x');
    std::atomic<int> sent{0};
    const auto endless = [&](std::string_view head, std::string_view body) {
        return [&, head, body](Connection& connection) {
            if (!connection.greet() || connection.receive().empty() || !connection.send(head)) {
                return;
            }
            for (int i = 0; i < 64 && connection.send(body); ++i) {
                ++sent;
            }
        };
    };
    std::string numbers;
    for (int i = 0; i < 200'000; ++i) {
        numbers += ":1\r\n";
    }
    for (const auto& [head, body] : {std::pair<std::string_view, std::string_view>{"$67108864\r\n", mebibyte},
                                     {"*16777216\r\n", numbers},
                                     {"-", mebibyte}}) {
        sent = 0;
        const FakeServer server(endless(head, body));
        Watched watched(options_of(server.port()));
        const Load load(watched);
        CHECK(watched.fails_with(StoreError::protocol_error));
        CHECK(watched.ended(StoreError::none) == 0);
    }
}

TEST_CASE("a server that hangs up after any number of bytes is unavailable") {
    const std::string_view answer = "*3\r\n:0\r\n:10\r\n:20\r\n";
    for (std::size_t bytes = 0; bytes < answer.size(); ++bytes) {
        const FakeServer server([&](Connection& connection) {
            if (connection.greet() && !connection.receive().empty()) {
                (void)connection.send(answer.substr(0, bytes));
            }
        });
        Watched watched(options_of(server.port()));
        CHECK(watched.fails_with(StoreError::unavailable));
        CHECK(watched.ended(StoreError::none) == 0);
    }
}

TEST_CASE("a server that hangs up amid its greeting is unavailable") {
    for (const char* greeting : {"", "$5\r\n1 1", "+O"}) {
        const FakeServer server([&](Connection& connection) {
            (void)connection.receive();
            (void)connection.send(greeting);
        });
        Watched watched(options_of(server.port()));
        CHECK(watched.fails_with(StoreError::unavailable));
        CHECK(watched.stats().sent == 0);
    }
}

TEST_CASE("a server that resets connections raises no signal, though the host has the default for it") {
    struct sigaction action {};
    REQUIRE(::sigaction(SIGPIPE, nullptr, &action) == 0);
    REQUIRE((action.sa_handler == SIG_DFL));
    const FakeServer server([](Connection& connection) {
        if (connection.greet() && !connection.receive().empty() && connection.send(":1\r\n")) {
            connection.answer_and_reset(":1\r\n");
        }
    });
    auto options = options_of(server.port());
    options.longest_wait = 1ms;
    Watched watched(options);
    CHECK(await([&] {
        (void)watched.check();
        return watched.stats().losses >= 200;
    }));
}

TEST_CASE("a server that hangs up after each greeting is not stormed") {
    const FakeServer server([](Connection& connection) { (void)connection.greet(); });
    Watched watched(options_of(server.port()));
    const auto begin = fault::Clock::now();
    const Load load(watched);
    CHECK(await([&] { return server.accepted() >= 10; }));
    CHECK(fault::Clock::now() - begin > 9 * 40ms);
    CHECK(watched.fails_with(StoreError::unavailable));
    CHECK(watched.stats().losses >= 9);
}

TEST_CASE("an error that nobody asked for, before the server hangs up, is told") {
    const FakeServer greeter(
        [](Connection& connection) { (void)connection.send("-ERR max number of clients reached\r\n"); });
    for (const char* name : {"", "named"}) {
        auto options = options_of(greeter.port());
        options.client_name = name;
        Watched watched(options);
        CHECK(watched.fails_with(StoreError::too_many_clients));
    }
    std::atomic<bool> speak{false};
    const FakeServer later([&](Connection& connection) {
        if (connection.greet() && !connection.receive().empty() && connection.send(":1\r\n")) {
            (void)await([&] { return speak.load(); });
            (void)connection.send("-ERR bye\r\n");
        }
    });
    Watched watched(options_of(later.port()));
    REQUIRE(watched.recovers());
    speak = true;
    CHECK(await([&] { return watched.stats().losses == 1; }));
}

TEST_CASE("a meta that is none is a newer format, and one of another kind an error") {
    for (const char* meta : {"$3\r\nfoo\r\n", "$7\r\n2 16 99\r\n", "$6\r\n1 17 9\r\n", ":1\r\n", "$-1\r\n"}) {
        const FakeServer server([&](Connection& connection) {
            (void)connection.receive();
            (void)connection.send(meta);
            connection.be_silent();
        });
        Watched watched(options_of(server.port()));
        CHECK(watched.fails_with(StoreError::newer_format));
    }
    const FakeServer server([&](Connection& connection) {
        (void)connection.receive();
        (void)connection.send("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
        connection.be_silent();
    });
    Watched watched(options_of(server.port()));
    CHECK(watched.fails_with(StoreError::wrong_type));
}

TEST_CASE("a server that never knows a script is asked to load it a few times a call") {
    const FakeServer server([](Connection& connection) {
        if (!connection.greet()) {
            return;
        }
        for (;;) {
            const std::vector<std::string> words = connection.receive();
            if (words.empty() || !connection.send(words[0] == "SCRIPT" ? "$1\r\nx\r\n" : "-NOSCRIPT No\r\n")) {
                return;
            }
        }
    });
    Watched watched(options_of(server.port()));
    CHECK(watched.fails_with(StoreError::no_script));
    const auto stats = watched.stats();
    CHECK(stats.loads >= 2 * watched.ended(StoreError::no_script));
    CHECK(stats.loads <= 8 * watched.ended(StoreError::no_script));
    CHECK(stats.losses == 0);
}

TEST_CASE("why a script was not taken is told") {
    const FakeServer server([](Connection& connection) {
        if (!connection.greet()) {
            return;
        }
        for (;;) {
            const std::vector<std::string> words = connection.receive();
            if (words.empty() || !connection.send(words[0] == "SCRIPT" ? "-NOPERM no\r\n" : "-NOSCRIPT No\r\n")) {
                return;
            }
        }
    });
    Watched watched(options_of(server.port()));
    CHECK(watched.fails_with(StoreError::no_permission));
    CHECK(watched.ended(StoreError::no_script) == 0);
}

TEST_CASE("a batch in a handler waits for one timeout, though its first answers took most of it") {
    constexpr auto timeout = 1s;
    const FakeServer server([](FakeServer::Connection& connection) {
        if (!connection.greet() || connection.receive().empty() || !connection.send(":0\r\n")) return;
        for (int check = 0; check < 64; ++check) {
            if (connection.receive().empty()) return;
        }
        std::this_thread::sleep_for(700ms);  // as a server that is slow, and gets slower
        for (int check = 0; check < 64; ++check) {
            if (!connection.send(":0\r\n")) return;
        }
        connection.be_silent();
    });
    auto options = options_of(server.port());
    options.timeout = timeout;
    options.stall_timeout = 10s;
    options.layout = penstock::Layout::per_key;
    Watched watched(options);
    std::atomic<bool> over{false};
    std::chrono::steady_clock::duration took{};
    std::vector<Decision> decisions(70);
    watched.limiter().async_check("first", 1, [&](const Decision&) {
        const std::vector<penstock::Check> checks(70, penstock::Check{.key = "key"});
        const auto begin = std::chrono::steady_clock::now();
        watched.limiter().check(checks, decisions);
        took = std::chrono::steady_clock::now() - begin;
        over = true;
    });
    REQUIRE(await([&] { return over.load(); }));
    CHECK(decisions[63].source == Source::store);
    CHECK(decisions[64].source == Source::fail_open);
    CHECK(took >= timeout);
    CHECK(took < timeout + 500ms);  // not another 700 ms
}

TEST_CASE("answers that come late go to nobody") {
    // Each answer is the number asked for, as the engine's echo expects; some come after their caller has gone.
    std::atomic<int> asked{0};
    const FakeServer server([&](Connection& connection) {
        if (!connection.greet()) {
            return;
        }
        for (;;) {
            const std::vector<std::string> words = connection.receive();
            if (words.empty()) {
                return;
            }
            if (++asked % 4 == 0) {
                std::this_thread::sleep_for(30ms);
            }
            if (!connection.send(":" + words.back() + "\r\n")) {
                return;
            }
        }
    });
    penstock::redis::Engine engine(support::engine_settings(server.port(), 15'000));
    int answered = 0;
    int late = 0;
    for (int i = 0; i < 60; ++i) {
        support::Echo echo(i);
        support::ask(engine, echo);
        CHECK(echo.right());
        answered += echo.answered() ? 1 : 0;
        late += echo.error() == StoreError::timeout ? 1 : 0;
    }
    CHECK(answered + late == 60);
    CHECK(answered > 0);
    CHECK(late >= 10);
    CHECK(await([&] { return engine.stats().late == static_cast<std::uint64_t>(late); }));
}

}  // namespace
