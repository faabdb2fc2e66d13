// SPDX-License-Identifier: MIT
// TLS with a real server: whom we trust, who trusts us, and that nothing else changes by it.
#include <penstock/redis/tls.hpp>

#if PENSTOCK_OPENSSL

#include <penstock/penstock.hpp>
#include <penstock/redis/stream.hpp>
#include <penstock/storage/redis.hpp>

#include "../support/certificates.hpp"
#include "../support/fake_server.hpp"
#include "../support/fault.hpp"
#include "../support/proxy.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using fault::await;
using fault::Load;
using fault::Watched;
using penstock::Check;
using penstock::Decision;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using penstock::redis::addresses_of;
using penstock::redis::Stream;
using penstock::redis::Tls;
using penstock::redis::TlsContext;
using support::Certificates;

const Certificates& certificates() {
    static const Certificates made;
    return made;
}

/// A server that speaks TLS on one port, and plain text on another.
class TlsServer {
public:
    explicit TlsServer(const std::string& names, bool asks_for_certificates = false) {
        const Certificates::Files files = certificates().issue("server", names);
        for (int attempt = 0; server_ == nullptr; ++attempt) {
            port_ = support::free_port();
            try {
                server_ = std::make_unique<support::RedisServer>(
                    std::vector<std::string>{"--tls-port",
                                             std::to_string(port_),
                                             "--tls-cert-file",
                                             files.certificate,
                                             "--tls-key-file",
                                             files.key,
                                             "--tls-ca-cert-file",
                                             certificates().ca(),
                                             "--tls-auth-clients",
                                             asks_for_certificates ? "yes" : "no"});
            } catch (const std::runtime_error&) {
                if (attempt == 3) throw;  // once more: another process was faster to take the port
            }
        }
    }

    [[nodiscard]] int port() const { return port_; }
    [[nodiscard]] support::RedisServer& operator*() const { return *server_; }
    [[nodiscard]] support::RedisServer* operator->() const { return server_.get(); }

private:
    int port_ = 0;
    std::unique_ptr<support::RedisServer> server_;
};

constexpr const char* both_names = "DNS:localhost,IP:127.0.0.1";

Tls trusting_our_ca() {
    return {.ca_file = certificates().ca()};
}

RedisStorage::Options options_of(int port, const Tls& tls, const std::string& host = "127.0.0.1") {
    RedisStorage::Options options = fault::options_of(port);
    options.url = "rediss://" + host + ":" + std::to_string(port);
    options.connect_timeout = 2s;  // sanitizers are slow with certificates
    options.tls = tls;
    return options;
}

bool works(int port, const Tls& tls, const std::string& host = "127.0.0.1") {
    Watched watched(options_of(port, tls, host));
    return watched.recovers();
}

bool refuses(int port, const Tls& tls, const std::string& host = "127.0.0.1") {
    Watched watched(options_of(port, tls, host));
    return watched.fails_with(StoreError::tls_failed) && watched.ended(StoreError::none) == 0;
}

constexpr std::uint64_t capacity = 1000;
constexpr TokenBucket small_bucket{.capacity = capacity, .refill = penstock::per_day(1)};

RedisStorage::Options patient(int port) {
    RedisStorage::Options options = options_of(port, trusting_our_ca());
    options.timeout = 20s;
    return options;
}

TEST_CASE("the name in the certificate is verified: that of the url, or the one that was given") {
    const TlsServer server("DNS:localhost,DNS:redis.example,DNS:*.wild.example");
    Tls tls = trusting_our_ca();
    CHECK(works(server.port(), tls, "localhost"));
    CHECK(refuses(server.port(), tls, "127.0.0.1"));
    for (const char* right : {"redis.example", "redis.example.", "REDIS.example", "a.wild.example"}) {
        CAPTURE(std::string(right));
        tls.server_name = right;
        CHECK(works(server.port(), tls));
    }
    for (const char* wrong :
         {"wrong.example", "example", "a.b.wild.example", "redis.example.org", "127.0.0.1", "::1"}) {
        CAPTURE(std::string(wrong));
        tls.server_name = wrong;
        CHECK(refuses(server.port(), tls, "localhost"));
    }
}

TEST_CASE("an address in the certificate is verified, and is no name") {
    const TlsServer server("IP:127.0.0.1,IP:2001:db8::1,DNS:127.0.0.2");
    Tls tls = trusting_our_ca();
    CHECK(works(server.port(), tls));
    CHECK(refuses(server.port(), tls, "localhost"));
    tls.server_name = "2001:db8:0::1";
    CHECK(works(server.port(), tls));
    tls.server_name = "127.0.0.2";
    CHECK(refuses(server.port(), tls));
}

TEST_CASE("a server of an unknown CA is refused, unless nothing is verified") {
    const TlsServer server(both_names);
    const Certificates others;
    CHECK(refuses(server.port(), {.ca_file = others.ca()}));
    CHECK(refuses(server.port(), {}));
    CHECK(works(server.port(), {.verify = false}));
    CHECK(works(server.port(), {.ca_file = others.ca(), .server_name = "wrong.example", .verify = false}));
}

TEST_CASE("a refusal is told at once to those who ask before the next attempt") {
    const TlsServer server("DNS:other.example");
    RedisStorage::Options options = options_of(server.port(), trusting_our_ca());
    options.timeout = 20s;
    options.longest_wait = 1h;
    Watched watched(options);
    const auto begin = fault::Clock::now();
    CHECK(watched.check().source == Source::fail_open);
    CHECK(watched.check().source == Source::fail_open);
    CHECK(fault::Clock::now() - begin < 10s);
    CHECK(watched.ended(StoreError::tls_failed) == 2);
}

TEST_CASE("a server that asks for a certificate takes ours, and nobody without one or with a stranger's") {
    const TlsServer server(both_names, true);
    const Certificates others;
    const Certificates::Files mine = certificates().issue("client", "");
    const Certificates::Files strange = others.issue("client", "");
    Tls tls = trusting_our_ca();
    CHECK(refuses(server.port(), tls));
    tls.certificate_file = strange.certificate;
    tls.key_file = strange.key;
    CHECK(refuses(server.port(), tls));
    tls.certificate_file = mine.certificate;
    tls.key_file = mine.key;
    CHECK(works(server.port(), tls));
}

TEST_CASE("TLS 1.2 and TLS 1.3 both do") {
    const TlsServer server(both_names);
    support::RedisClient client(server->port());
    for (const char* version : {"TLSv1.2", "TLSv1.3"}) {
        CAPTURE(std::string(version));
        CHECK(client("CONFIG", "SET", "tls-protocols", version).text == "OK");
        CHECK(works(server.port(), trusting_our_ca()));
    }
}

double cpu_seconds() {
    std::timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

TEST_CASE("a server that accepts and says nothing costs the connect timeout, and no processor time meanwhile") {
    const support::FakeServer silent([](support::FakeServer::Connection& connection) { connection.be_silent(); });
    RedisStorage::Options options = options_of(silent.port(), trusting_our_ca());
    options.timeout = 5s;
    options.connect_timeout = 1s;
    options.longest_wait = 1h;
    Watched watched(options);
    const auto begin = fault::Clock::now();
    const double cpu = cpu_seconds();
    CHECK(watched.check().source == Source::fail_open);
    CHECK(cpu_seconds() - cpu < 0.2);
    CHECK(fault::Clock::now() - begin < 4s);
    CHECK(watched.ended(StoreError::timeout) == 1);
}

TEST_CASE("a server without TLS fails within the connect timeout") {
    const support::RedisServer plain;
    RedisStorage::Options options = options_of(plain.port(), trusting_our_ca());
    options.timeout = 5s;
    options.connect_timeout = 300ms;
    Watched watched(options);
    const auto begin = fault::Clock::now();
    CHECK(watched.check().source == Source::fail_open);
    CHECK(fault::Clock::now() - begin < 3s);
    // It waits for the rest of what it takes for a command, or complains about it in plain text.
    CHECK(watched.ended(StoreError::timeout) + watched.ended(StoreError::tls_failed) == 1);

    const support::FakeServer talks([](support::FakeServer::Connection& connection) {
        (void)connection.send("-ERR unknown command\r\n");
        connection.be_silent();
    });
    CHECK(refuses(talks.port(), trusting_our_ca()));
}

TEST_CASE("plain text to a server that speaks TLS fails, and it goes on to serve others") {
    const TlsServer server(both_names);
    Watched watched(fault::options_of(server.port()));
    CHECK(await([&] {
        (void)watched.check();
        return watched.ended(StoreError::protocol_error) + watched.ended(StoreError::unavailable) > 0;
    }));
    CHECK(watched.ended(StoreError::none) == 0);
    CHECK(works(server.port(), trusting_our_ca()));
}

TEST_CASE("a server that comes back is used again, and one that hangs does not hang us") {
    const TlsServer server(both_names);
    Watched watched(options_of(server.port(), trusting_our_ca()));
    CHECK(watched.recovers());
    const Load load(watched);
    for (int round = 0; round < 3; ++round) {
        server->restart();
        CHECK(watched.recovers());
    }
    server->stop();
    CHECK(watched.fails_with(StoreError::timeout));
    server->resume();
    CHECK(watched.recovers());
    CHECK(watched.ended(StoreError::protocol_error) == 0);
    CHECK(watched.ended(StoreError::tls_failed) == 0);
}

TEST_CASE("servers that are killed raise no SIGPIPE, whoever is in charge of the I/O") {
    const auto before = std::signal(SIGPIPE, SIG_DFL);
    const TlsServer server(both_names);
    Watched watched(options_of(server.port(), trusting_our_ca()));
    for (int round = 0; round < 10; ++round) {
        CHECK(watched.recovers());
        const Load load(watched, round % 2 == 0 ? 1 : 3);
        const std::uint64_t before_load = watched.ended(StoreError::none);
        CHECK(await([&] { return watched.ended(StoreError::none) > before_load + 100; }));
        server->restart();
    }
    CHECK(watched.recovers());
    std::signal(SIGPIPE, before);
}

/// A stream of its own, without an engine.
class Connected {
public:
    explicit Connected(int port) : context_(trusting_our_ca()) {
        const auto address =
            addresses_of({.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)}, true).front();
        REQUIRE(stream.connect(address, &context_, "127.0.0.1"));
        while (stream.state() != Stream::State::open) {
            REQUIRE(stream.state() != Stream::State::failed);
            wait(false);
            stream.advance();
        }
        // What TLS itself has to tell after the handshake.
        send("PING\r\n");
        CHECK(receive(7) == "+PONG\r\n");
    }

    void wait(bool output) const {
        pollfd polled{.fd = stream.socket().fd(), .events = stream.events(output), .revents = 0};
        REQUIRE(poll(&polled, 1, 20'000) == 1);
    }

    void send(std::string_view text) { CHECK(stream.send(text) == Stream::Result::done); }

    std::string receive(std::size_t size) {
        std::string all;
        while (all.size() < size) {
            std::size_t received = 0;
            if (stream.receive(buffer, received) == Stream::Result::done) {
                all.append(buffer.data(), received);
            } else {
                wait(false);
            }
        }
        return all;
    }

    Stream stream;
    std::array<char, 65536> buffer{};

private:
    TlsContext context_;
};

TEST_CASE("to write to a server that is no more raises no SIGPIPE") {
    const auto before = std::signal(SIGPIPE, SIG_DFL);
    const TlsServer server(both_names);
    Connected client(server.port());
    server->stop();
    client.send("PING\r\n");  // unread, so that the connection is reset when the server goes
    server->kill();
    CHECK(await([&] {
        std::string_view text = "PING\r\n";
        return client.stream.send(text) == Stream::Result::closed;
    }));
    std::string_view text = "PING\r\n";
    CHECK(client.stream.send(text) == Stream::Result::closed);
    CHECK_FALSE(client.stream.tls_failed());
    std::signal(SIGPIPE, before);
}

TEST_CASE("what was received together is told of when only a part was taken") {
    const TlsServer server(both_names);
    Connected client(server.port());
    CHECK_FALSE(client.stream.has_more(7, client.buffer.size()));
    client.send("PING\r\n");
    std::this_thread::sleep_for(50ms);  // or the server would answer both in one record
    client.send("PING\r\n");
    std::this_thread::sleep_for(50ms);
    std::size_t received = 0;
    client.wait(false);
    REQUIRE(client.stream.receive(client.buffer, received) == Stream::Result::done);
    REQUIRE(received == 7);
    CHECK(client.stream.has_more(received, client.buffer.size()));
    CHECK(client.stream.events(false) == (POLLIN | POLLOUT));
    CHECK(client.stream.receives_at(POLLOUT));
    client.wait(false);  // ends at once
    REQUIRE(client.stream.receive(client.buffer, received) == Stream::Result::done);
    CHECK(received == 7);
    CHECK_FALSE(client.stream.has_more(received, client.buffer.size()));
    CHECK_FALSE(client.stream.receives_at(POLLOUT));
}

TEST_CASE("what waits to be sent may move and grow meanwhile") {
    const TlsServer server(both_names);
    Connected client(server.port());
    constexpr std::size_t size = 32'000'000;
    server->stop();
    const std::string command =
        "*2\r\n$4\r\nECHO\r\n$" + std::to_string(size) + "\r\n" + std::string(size, 'x') + "\r\n";
    std::string_view unsent = command;
    REQUIRE(client.stream.send(unsent) == Stream::Result::later);
    CHECK(client.stream.events(true) == (POLLIN | POLLOUT));
    const std::string moved = std::string(unsent) + "PING\r\n";
    unsent = moved;
    server->resume();
    while (!unsent.empty()) {
        REQUIRE(client.stream.send(unsent) != Stream::Result::closed);
        if (!unsent.empty()) {
            client.wait(true);
        }
    }
    const std::string expected = "$" + std::to_string(size) + "\r\n" + std::string(size, 'x') + "\r\n+PONG\r\n";
    const bool same = client.receive(expected.size()) == expected;
    CHECK(same);
}

TEST_CASE("records that come in pieces, or several at once, are the same") {
    const TlsServer server(both_names);
    support::Proxy proxy(server.port());
    RedisStorage::Options options = patient(proxy.port());
    options.connect_timeout = 20s;  // byte by byte it takes long
    options.stall_timeout = 20s;
    std::uint64_t expected = capacity;
    for (const std::size_t longest : {1U, 7U, 100U, 5000U}) {
        std::size_t next = 0;
        proxy.cut_by([=](std::size_t waiting) mutable { return (std::min)(waiting, 1 + next++ % longest); });
        Limiter limiter{small_bucket, RedisStorage{options}};
        std::atomic<int> answered{0};
        for (int i = 0; i < 20; ++i) {
            limiter.async_check("client", 1, [&](const Decision&) { ++answered; });
        }
        CHECK(await([&] { return answered == 20; }));
        expected -= 21;
        CHECK(limiter.check("client").remaining == expected);
    }
}

TEST_CASE("connections that come and go leave no file open") {
    const TlsServer server(both_names);
    CHECK(works(server.port(), trusting_our_ca()));
    const std::ptrdiff_t before = fault::open_files();
    for (int round = 0; round < 5; ++round) {
        CHECK(works(server.port(), trusting_our_ca()));
        CHECK(refuses(server.port(), {}));
    }
    CHECK(fault::open_files() == before);
}

TEST_CASE("many threads admit the limit exactly") {
    const TlsServer server(both_names);
    Limiter limiter{small_bucket, RedisStorage{patient(server.port())}};
    std::atomic<std::uint64_t> admitted{0};
    std::atomic<std::uint64_t> unanswered{0};
    threads::together(8, [&](std::size_t) {
        for (std::uint64_t i = 0; i < capacity / 4; ++i) {
            const Decision decision = limiter.check("client");
            admitted += decision.allowed ? 1 : 0;
            unanswered += decision.source == Source::store ? 0 : 1;
        }
    });
    CHECK(admitted == capacity);
    CHECK(unanswered == 0);
}

TEST_CASE("large pipelines of several threads are answered, each to whom it belongs") {
    const TlsServer server(both_names);
    Limiter limiter{small_bucket, RedisStorage{patient(server.port())}};
    constexpr std::size_t batch = 64;
    constexpr std::size_t rounds = 50;
    std::atomic<std::uint64_t> wrong{0};
    threads::together(4, [&](std::size_t thread) {
        // Names so long that requests fill many records, and the buffers of the system.
        std::vector<std::string> names;
        for (std::size_t i = 0; i < batch; ++i) {
            names.push_back(std::to_string(thread * batch + i) + std::string(i * 100, 'x'));
        }
        std::array<Check, batch> checks;
        std::array<Decision, batch> decisions;
        for (std::size_t i = 0; i < batch; ++i) {
            checks[i] = {.key = names[i], .cost = 1 + i % 3};
        }
        for (std::size_t round = 1; round <= rounds; ++round) {
            limiter.check(checks, decisions);
            for (std::size_t i = 0; i < batch; ++i) {
                wrong += decisions[i].remaining == capacity - round * (1 + i % 3) ? 0 : 1;
            }
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("thousands of checks in flight are answered once each") {
    const TlsServer server(both_names);
    Limiter limiter{small_bucket, RedisStorage{patient(server.port())}};
    (void)limiter.check("warm");
    constexpr int count = 5000;
    std::atomic<int> answered{0};
    std::atomic<int> admitted{0};
    for (int i = 0; i < count; ++i) {
        limiter.async_check("client", 1, [&](const Decision& decision) {
            admitted += decision.allowed ? 1 : 0;
            ++answered;
        });
    }
    CHECK(await([&] { return answered == count; }));
    CHECK(admitted == static_cast<int>(capacity));
}

TEST_CASE("OpenSSL's errors of the host's thread stay while it leads the I/O") {
    const TlsServer server(both_names);
    ERR_clear_error();
    CHECK(BIO_new_file("/nowhere/of/the/host", "r") == nullptr);
    const unsigned long first = ERR_peek_error();
    const unsigned long last = ERR_peek_last_error();
    {
        Watched watched(options_of(server.port(), trusting_our_ca()));
        CHECK(watched.recovers());
        for (int i = 0; i < 100; ++i) {
            CHECK(watched.answered());
        }
        server->restart();
        CHECK(watched.recovers());
        CHECK(watched.ended(StoreError::tls_failed) == 0);
    }
    CHECK(ERR_peek_error() == first);
    CHECK(ERR_peek_last_error() == last);
    ERR_clear_error();
    CHECK(refuses(server.port(), {}));
    CHECK(ERR_peek_error() == 0);
}

#if !defined(__SANITIZE_THREAD__)  // which does not go on after a fork
TEST_CASE("a fork's child has a session of its own, and the parent's goes on") {
    const TlsServer server(both_names);
    Watched watched(options_of(server.port(), trusting_our_ca()));
    CHECK(watched.recovers());
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(watched.recovers() ? 0 : 1);
    }
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(watched.answered());
    CHECK(watched.stats().losses == 0);
    CHECK(watched.stats().connects == 1);
}
#endif

TEST_CASE("each server of a ring is verified by its own name") {
    const TlsServer one("DNS:localhost");
    const TlsServer other("IP:127.0.0.1");
    RedisStorage::Options options = patient(one.port());
    options.url =
        "rediss+ring://localhost:" + std::to_string(one.port()) + ",127.0.0.1:" + std::to_string(other.port());
    Limiter limiter{small_bucket, RedisStorage{options}};
    for (int i = 0; i < 50; ++i) {
        CHECK(limiter.check("client" + std::to_string(i)).source == Source::store);
    }
    CHECK(support::RedisClient(one->port())("DBSIZE").integer > 1);
    CHECK(support::RedisClient(other->port())("DBSIZE").integer > 1);
}

}  // namespace

#else

#include <doctest/doctest.h>

TEST_CASE("without OpenSSL there is no TLS, which is tested with tests/unit/redis/tls.cpp") {}

#endif
