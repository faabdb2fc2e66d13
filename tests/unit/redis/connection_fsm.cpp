// SPDX-License-Identifier: MIT
// When a connection is made, given up and made again: every moment of it, without a socket.
#include <penstock/redis/connection_fsm.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using penstock::StoreError;
using penstock::redis::ConnectionFsm;
using Action = ConnectionFsm::Action;
using Phase = ConnectionFsm::Phase;

constexpr ConnectionFsm::Settings settings{
    .connect_timeout = 1000, .stall_timeout = 500, .shortest_wait = 100, .longest_wait = 800};

/// One that has just become ready.
ConnectionFsm ready_at(std::int64_t now) {
    ConnectionFsm fsm(settings);
    static_cast<void>(fsm.tick(now));
    fsm.connected();
    fsm.greeted(now);
    return fsm;
}

/// How long is waited after so many failures, with the same luck each time.
std::int64_t wait_after(int failures, std::uint64_t random) {
    ConnectionFsm fsm(settings);
    std::int64_t now = 0;
    for (int i = 0; i < failures; ++i) {
        now = fsm.due();
        REQUIRE(fsm.tick(now) == Action::connect);
        fsm.lost(now, StoreError::unavailable, random);
    }
    return fsm.due() - now;
}

TEST_CASE("a connection is made at once, and there is hope meanwhile") {
    ConnectionFsm fsm(settings);
    CHECK(fsm.phase() == Phase::waiting);
    CHECK(fsm.tick(5) == Action::connect);
    CHECK(fsm.phase() == Phase::connecting);
    CHECK(fsm.error() == StoreError::none);
    CHECK(fsm.tick(6) == Action::nothing);
    fsm.connected();
    CHECK(fsm.phase() == Phase::greeting);
    fsm.greeted(7);
    CHECK(fsm.phase() == Phase::ready);
    CHECK(fsm.tick(1'000'000) == Action::nothing);
}

TEST_CASE("name, connection and greeting have one time together") {
    ConnectionFsm fsm(settings);
    static_cast<void>(fsm.tick(0));
    fsm.connected();
    CHECK(fsm.tick(999) == Action::nothing);
    CHECK(fsm.tick(1000) == Action::disconnect);
    fsm.lost(1000, StoreError::timeout, 0);
    CHECK(fsm.error() == StoreError::timeout);
    CHECK(fsm.phase() == Phase::waiting);
}

TEST_CASE("a connection that was ready is made again at once, with hope") {
    ConnectionFsm fsm = ready_at(0);
    fsm.lost(5000, StoreError::unavailable, 0);
    CHECK(fsm.error() == StoreError::none);
    CHECK(fsm.tick(5000) == Action::connect);
}

TEST_CASE("a server that hangs up as soon as a connection is ready is not stormed") {
    ConnectionFsm fsm = ready_at(1000);
    fsm.lost(1001, StoreError::unavailable, 0);
    CHECK(fsm.tick(1099) == Action::nothing);
    CHECK(fsm.tick(1100) == Action::connect);
}

TEST_CASE("failed attempts are ever further apart, up to the longest wait") {
    CHECK(wait_after(1, 0) == 100);
    CHECK(wait_after(2, 0) == 200);
    CHECK(wait_after(3, 0) == 400);
    CHECK(wait_after(4, 0) == 800);
    CHECK(wait_after(5, 0) == 800);
    CHECK(wait_after(100, 0) == 800);
}

TEST_CASE("the wait is shortened at random by up to a half") {
    for (std::uint64_t random = 0; random < 1000; ++random) {
        const std::int64_t wait = wait_after(3, random);
        CHECK(wait <= 400);
        CHECK(wait >= 200);
    }
    CHECK(wait_after(3, 1) != wait_after(3, 100));
}

TEST_CASE("after a success the waits begin anew") {
    ConnectionFsm fsm(settings);
    for (int i = 0; i < 4; ++i) {
        static_cast<void>(fsm.tick(fsm.due()));
        fsm.lost(fsm.due(), StoreError::unavailable, 0);
    }
    static_cast<void>(fsm.tick(fsm.due()));
    fsm.connected();
    fsm.greeted(10'000);
    CHECK(fsm.error() == StoreError::none);
    fsm.lost(20'000, StoreError::unavailable, 0);
    static_cast<void>(fsm.tick(20'000));
    fsm.lost(20'001, StoreError::unavailable, 0);
    CHECK(fsm.due() == 20'101);
}

TEST_CASE("a connection on which nothing is heard though something is expected is given up") {
    ConnectionFsm fsm = ready_at(0);
    fsm.sent(1000);
    fsm.sent(1400);  // asking more does not make it wait longer
    CHECK(fsm.tick(1499) == Action::nothing);
    CHECK(fsm.tick(1500) == Action::disconnect);
}

TEST_CASE("what is heard keeps a connection, and an idle one has all the time in the world") {
    ConnectionFsm fsm = ready_at(0);
    fsm.sent(1000);
    fsm.heard(1400, true);
    CHECK(fsm.tick(1899) == Action::nothing);
    fsm.heard(1899, false);
    CHECK(fsm.tick(1'000'000'000) == Action::nothing);
}

}  // namespace
