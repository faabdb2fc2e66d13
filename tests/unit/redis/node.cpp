// SPDX-License-Identifier: MIT
// A server's connection: which address is tried when, and what is sent.
#include <penstock/redis/node.hpp>

#include "../../support/tcp.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <poll.h>

namespace {

using penstock::redis::ConnectionFsm;
using penstock::redis::Node;
using penstock::redis::Waker;

std::unique_ptr<Node> node_of(int port) {
    return std::make_unique<Node>(
        penstock::redis::Endpoint{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(port)},
        ConnectionFsm::Settings{},
        nullptr);
}

std::string received(int socket, std::size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(static_cast<std::size_t>(::recv(socket, bytes.data(), size, MSG_WAITALL)));
    return bytes;
}

/// Waits for what a node waits for, and does what can be done then.
void await(Node& node) {
    std::array<char, 65536> buffer;
    pollfd polled{.fd = node.socket().fd(), .events = node.events(), .revents = 0};
    REQUIRE(::poll(&polled, 1, 10'000) == 1);
    node.perform(polled.revents, buffer);
}

/// Connects; the server's end of the connection.
int connect(Node& node, const support::TcpListener& listener) {
    node.look_up(std::make_shared<const Waker>());
    REQUIRE(node.connect_further());
    const int accepted = listener.accept();
    await(node);
    REQUIRE(node.connected());
    node.established = true;
    return accepted;
}

TEST_CASE("what callers write is sent in the order in which it was written") {
    const support::TcpListener listener;
    const auto node = node_of(listener.port());
    const int server = connect(*node, listener);
    node->inbox = "first";
    CHECK_FALSE(node->has_output());
    node->take_inbox();
    CHECK(node->has_output());
    node->inbox = "second";
    node->take_inbox();
    CHECK(node->inbox.empty());
    CHECK(node->send());
    CHECK_FALSE(node->has_output());
    CHECK(received(server, 11) == "firstsecond");
    ::close(server);
}

TEST_CASE("what the server sends is read, and its end is seen") {
    const support::TcpListener listener;
    const auto node = node_of(listener.port());
    const int server = connect(*node, listener);
    REQUIRE(support::send_all(server, ":1\r\n:2\r\n"));
    ::close(server);
    while (!node->closed) {
        await(*node);
    }
    CHECK(node->failure() == penstock::StoreError::unavailable);
    for (const std::int64_t expected : {1, 2}) {
        REQUIRE(node->reader().next() == penstock::redis::ReplyReader::Status::reply);
        CHECK(node->reader().reply().nodes.front().integer == expected);
    }
}

TEST_CASE("an address where nobody is is the last of its name, until the next attempt") {
    int port = 0;
    {
        const support::TcpListener gone;
        port = gone.port();
    }
    const auto node = node_of(port);
    for (int attempt = 0; attempt < 3; ++attempt) {
        node->look_up(std::make_shared<const Waker>());
        if (node->connect_further()) {
            await(*node);
            CHECK_FALSE(node->connected());
            CHECK_FALSE(node->connect_further());
        }
        node->disconnect();
        CHECK(node->socket().fd() < 0);
    }
}

TEST_CASE("a connection that is given up leaves nothing behind for the next") {
    const support::TcpListener listener;
    const auto node = node_of(listener.port());
    ::close(connect(*node, listener));
    node->inbox = "never sent";
    node->take_inbox();
    node->inbox = "nor this";
    node->closed = true;
    node->disconnect();
    CHECK_FALSE(node->has_output());
    CHECK(node->inbox.empty());
    CHECK_FALSE(node->established);
    CHECK_FALSE(node->closed);
    const int server = connect(*node, listener);
    node->inbox = "new";
    node->take_inbox();
    CHECK(node->send());
    CHECK(received(server, 3) == "new");
    ::close(server);
}

}  // namespace
