// SPDX-License-Identifier: MIT
// Locks that are held for nanoseconds.
#include <penstock/detail/threads.hpp>

#include "../../support/threads.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {

using penstock::detail::Threads;
using Lock = penstock::detail::SpinLock<Threads>;

TEST_CASE("one thread at a time holds the lock") {
    std::atomic<std::uint32_t> flag{0};
    std::uint64_t count = 0;
    threads::together(4, [&](std::size_t) {
        for (int i = 0; i < 5000; ++i) {
            const Lock lock(flag);
            ++count;
        }
    });
    CHECK(count == 20'000);
    CHECK(flag.load() == 0);
}

TEST_CASE("waiting spins first, then gives way") {
    Threads::pause(0);
    Threads::pause(1000);
}

}  // namespace
