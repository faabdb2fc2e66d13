// SPDX-License-Identifier: MIT
// Streams that never block and raise no signal.
#include <penstock/redis/socket.hpp>

#include "../../support/tcp.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

namespace {

using penstock::redis::addresses_of;
using penstock::redis::Descriptor;
using penstock::redis::Endpoint;
using penstock::redis::Socket;
using support::TcpListener;
using Result = Socket::Result;

bool await(const Socket& socket, short events) {
    pollfd polled{.fd = socket.fd(), .events = events, .revents = 0};
    return poll(&polled, 1, 10'000) == 1;
}

Socket connected_to(const TcpListener& listener) {
    const auto addresses =
        addresses_of({.host = "127.0.0.1", .port = static_cast<std::uint16_t>(listener.port())}, true);
    REQUIRE(addresses.size() == 1);
    Socket socket = Socket::connect(addresses.front());
    REQUIRE(static_cast<bool>(socket));
    REQUIRE(await(socket, POLLOUT));
    return socket;
}

TEST_CASE("numbers are addresses, names are not looked up where that might block") {
    CHECK(addresses_of({.host = "127.0.0.1", .port = 6379}, true).size() == 1);
    CHECK(addresses_of({.host = "::1", .port = 6379}, true).size() == 1);
    CHECK(addresses_of({.host = "localhost", .port = 6379}, true).empty());
    CHECK_FALSE(addresses_of({.host = "localhost", .port = 6379}, false).empty());
    CHECK(addresses_of({.host = "no such name.invalid", .port = 6379}, false).empty());
    CHECK(addresses_of({.port = 0, .path = "/tmp/socket"}, true).size() == 1);
    CHECK(addresses_of({.port = 0, .path = std::string(200, 'x')}, true).empty());
}

TEST_CASE("a descriptor is closed once, by its last owner") {
    Descriptor first(::socket(AF_INET, SOCK_STREAM, 0));
    const int fd = first.get();
    {
        const Descriptor second(std::move(first));
        CHECK(second.get() == fd);
        CHECK(fcntl(fd, F_GETFD) >= 0);
    }
    CHECK(fcntl(fd, F_GETFD) == -1);
}

TEST_CASE("a socket is not inherited, and its bytes arrive") {
    const TcpListener listener;
    Socket socket = connected_to(listener);
    CHECK(socket.connected());
    CHECK((fcntl(socket.fd(), F_GETFD) & FD_CLOEXEC) != 0);
    const Descriptor peer(listener.accept());

    std::string_view bytes = "ping";
    CHECK(socket.send(bytes) == Result::done);
    CHECK(bytes.empty());
    std::array<char, 16> buffer{};
    CHECK(recv(peer.get(), buffer.data(), buffer.size(), 0) == 4);

    std::size_t received = 0;
    CHECK(socket.receive(buffer, received) == Result::later);
    REQUIRE(send(peer.get(), "pong!", 5, 0) == 5);
    REQUIRE(await(socket, POLLIN));
    CHECK(socket.receive(buffer, received) == Result::done);
    CHECK(std::string_view(buffer.data(), received) == "pong!");
}

TEST_CASE("what the system does not take yet is kept for later") {
    const TcpListener listener;
    Socket socket = connected_to(listener);
    const Descriptor peer(listener.accept());
    const std::string large(std::size_t{64} << 20, 'x');
    std::string_view bytes = large;
    CHECK(socket.send(bytes) == Result::later);
    CHECK(bytes.size() < large.size());
    CHECK_FALSE(bytes.empty());
}

TEST_CASE("a connection that the other side has closed is told so, without a signal") {
    const TcpListener listener;
    Socket socket = connected_to(listener);
    Descriptor(listener.accept()).close();
    REQUIRE(await(socket, POLLIN));
    std::array<char, 16> buffer{};
    std::size_t received = 0;
    CHECK(socket.receive(buffer, received) == Result::closed);
    for (int i = 0; i < 100; ++i) {
        std::string_view bytes = "into the void";
        if (socket.send(bytes) == Result::closed) return;
        static_cast<void>(await(socket, POLLIN));
    }
    CHECK_MESSAGE(false, "sending to a closed peer never fails");
}

TEST_CASE("a port where nobody listens refuses") {
    std::uint16_t port = 0;
    {
        const TcpListener listener;
        port = static_cast<std::uint16_t>(listener.port());
    }
    Socket socket = Socket::connect(addresses_of({.host = "127.0.0.1", .port = port}, true).front());
    if (socket) {
        REQUIRE(await(socket, POLLOUT));
        CHECK_FALSE(socket.connected());
    }
}

}  // namespace
