// SPDX-License-Identifier: MIT
// Signals that are meant for the host's threads.
#include <penstock/redis/signals.hpp>

#include <doctest/doctest.h>

#include <csignal>

namespace {

using penstock::redis::SignalsBlocked;

TEST_CASE("signals are blocked for a while, but not those of a crash") {
    sigset_t now;
    {
        const SignalsBlocked blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &now);
        CHECK(sigismember(&now, SIGTERM) == 1);
        CHECK(sigismember(&now, SIGPIPE) == 1);
        CHECK(sigismember(&now, SIGSEGV) == 0);
    }
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    CHECK(sigismember(&now, SIGTERM) == 0);
}

}  // namespace
