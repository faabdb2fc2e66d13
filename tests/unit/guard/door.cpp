// SPDX-License-Identifier: MIT
// Who comes late does not get in; who is in is waited for.
#include <penstock/guard/door.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

using penstock::detail::Door;

TEST_CASE("nobody gets in once it is closed") {
    Door door;
    CHECK(door.enter());
    CHECK(door.enter());
    door.leave();
    door.leave();
    door.close();
    CHECK_FALSE(door.enter());
    door.close();  // once more is as good
    CHECK_FALSE(door.enter());
}

TEST_CASE("when it is closed nobody is in") {
    for (int round = 0; round < 200; ++round) {
        Door door;
        std::atomic<bool> closed{false};
        std::atomic<int> met{0};
        std::vector<std::thread> guests;
        for (int guest = 0; guest < 3; ++guest) {
            guests.emplace_back([&] {
                while (door.enter()) {
                    met += closed ? 1 : 0;
                    door.leave();
                }
            });
        }
        door.close();
        closed = true;
        for (std::thread& guest : guests) {
            guest.join();
        }
        CHECK(met == 0);
    }
}

}  // namespace
