// SPDX-License-Identifier: MIT
// One thread tells another.
#include <penstock/redis/event.hpp>

#include <penstock/detail/os.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

namespace {

using penstock::detail::Event;
using penstock::detail::steady_now;

TEST_CASE("what was set before is not waited for") {
    Event event;
    CHECK_FALSE(event.is_set());
    event.set();
    CHECK(event.is_set());
    CHECK(event.wait_until(0));
}

TEST_CASE("who waits in vain is told so, not too early") {
    Event event;
    const auto end = steady_now().count() + 2000;
    CHECK_FALSE(event.wait_until(end));
    CHECK(steady_now().count() >= end);
    event.set();
    CHECK(event.wait_until(0));
}

TEST_CASE("a waiter may destroy the event as soon as it sees it set") {
    std::atomic<Event*> shared{nullptr};
    std::thread setter([&] {
        for (int i = 0; i < 20'000; ++i) {
            Event* event = nullptr;
            while ((event = shared.exchange(nullptr)) == nullptr) {
                std::this_thread::yield();
            }
            event->set();
        }
    });
    for (int i = 0; i < 20'000; ++i) {
        std::optional<Event> event(std::in_place);
        shared = &*event;
        CHECK(event->wait_until(steady_now().count() + 60'000'000));
    }
    setter.join();
}

}  // namespace
