// SPDX-License-Identifier: MIT
// A thread in poll() is woken.
#include <penstock/redis/waker.hpp>

#include <doctest/doctest.h>

#include <poll.h>

namespace {

using penstock::redis::Waker;

bool is_woken(const Waker& waker) {
    pollfd polled{.fd = waker.fd(), .events = POLLIN, .revents = 0};
    return poll(&polled, 1, 0) == 1;
}

TEST_CASE("a waker is readable from when it wakes until it is cleared") {
    const Waker waker;
    CHECK_FALSE(is_woken(waker));
    waker.wake();
    waker.wake();
    CHECK(is_woken(waker));
    waker.clear();
    CHECK_FALSE(is_woken(waker));
}

TEST_CASE("waking never blocks, however often") {
    const Waker waker;
    for (int i = 0; i < 100'000; ++i) {
        waker.wake();
    }
    CHECK(is_woken(waker));
    waker.clear();
    CHECK_FALSE(is_woken(waker));
}

}  // namespace
