// SPDX-License-Identifier: MIT
// A connection from its beginning to its end, without TLS; tests/redis/tls.cpp has the same with it.
#include <penstock/redis/stream.hpp>

#include "../../support/tcp.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>

namespace {

using penstock::redis::Address;
using penstock::redis::addresses_of;
using penstock::redis::Descriptor;
using penstock::redis::Stream;
using Result = Stream::Result;
using State = Stream::State;

Address address_of(int port) {
    return addresses_of({.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)}, true).front();
}

short await(const Stream& stream, bool output) {
    pollfd polled{.fd = stream.socket().fd(), .events = stream.events(output), .revents = 0};
    REQUIRE(poll(&polled, 1, 10'000) == 1);
    return polled.revents;
}

TEST_CASE("a stream that is not connected is closed") {
    const Stream stream;
    CHECK(stream.state() == State::closed);
    CHECK_FALSE(static_cast<bool>(stream.socket()));
    CHECK_FALSE(stream.tls_failed());
}

TEST_CASE("a stream connects, and bytes go both ways") {
    const support::TcpListener listener;
    Stream stream;
    REQUIRE(stream.connect(address_of(listener.port()), nullptr, "127.0.0.1"));
    CHECK(stream.state() == State::connecting);
    CHECK(stream.events(false) == (POLLIN | POLLOUT));
    await(stream, false);
    stream.advance();
    REQUIRE(stream.state() == State::open);
    CHECK(stream.events(false) == POLLIN);
    CHECK(stream.events(true) == (POLLIN | POLLOUT));

    const Descriptor peer(listener.accept());
    std::string_view bytes = "ping";
    CHECK(stream.send(bytes) == Result::done);
    std::array<char, 8> buffer{};
    CHECK(recv(peer.get(), buffer.data(), buffer.size(), 0) == 4);

    std::size_t received = 0;
    CHECK(stream.receive(buffer, received) == Result::later);
    REQUIRE(send(peer.get(), "pong pong", 9, 0) == 9);
    const short events = await(stream, false);
    CHECK(stream.receives_at(events));
    CHECK_FALSE(stream.receives_at(POLLOUT));
    CHECK(stream.receive(buffer, received) == Result::done);
    CHECK(received == 8);
    CHECK(stream.has_more(received, buffer.size()));
    CHECK(stream.receive(buffer, received) == Result::done);
    CHECK(received == 1);
    CHECK_FALSE(stream.has_more(received, buffer.size()));

    stream.close();
    CHECK(stream.state() == State::closed);
    CHECK(recv(peer.get(), buffer.data(), buffer.size(), 0) == 0);
}

TEST_CASE("a connection that is refused fails, and not because of TLS") {
    const int port = support::TcpListener().port();
    Stream stream;
    if (stream.connect(address_of(port), nullptr, "127.0.0.1")) {
        await(stream, false);
        stream.advance();
        CHECK(stream.state() == State::failed);
    }
    CHECK_FALSE(stream.tls_failed());
}

}  // namespace
