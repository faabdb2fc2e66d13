// SPDX-License-Identifier: MIT
// Names are looked up without anybody waiting for it.
#include <penstock/redis/resolver.hpp>

#include <doctest/doctest.h>

#include <memory>

#include <poll.h>

namespace {

using penstock::redis::Resolution;
using penstock::redis::Waker;

TEST_CASE("numbers and paths are there at once") {
    const auto waker = std::make_shared<const Waker>();
    const Resolution number({.host = "127.0.0.1", .port = 6379}, waker);
    REQUIRE(number.done());
    CHECK(number.addresses().size() == 1);
    const Resolution path({.port = 0, .path = "/tmp/socket"}, waker);
    REQUIRE(path.done());
    CHECK(path.addresses().size() == 1);
}

TEST_CASE("a name wakes who waits when it has been looked up, found or not") {
    for (const char* name : {"localhost", "no-such-name.invalid"}) {
        const auto waker = std::make_shared<const Waker>();
        const Resolution resolution({.host = name, .port = 6379}, waker);
        pollfd polled{.fd = waker->fd(), .events = POLLIN, .revents = 0};
        REQUIRE(poll(&polled, 1, 60'000) == 1);
        CHECK(resolution.done());
    }
}

TEST_CASE("a resolution may be forgotten before it is done") {
    const auto waker = std::make_shared<const Waker>();
    for (int i = 0; i < 10; ++i) {
        const Resolution resolution({.host = "localhost", .port = 6379}, waker);
    }
}

}  // namespace
