// SPDX-License-Identifier: MIT
// One thread tells another.
#include <penstock/redis/event.hpp>

#include <penstock/detail/os.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using penstock::detail::Bell;
using penstock::detail::Bells;
using penstock::detail::Event;
using penstock::detail::steady_now;

/// As whoever has no lock to give back first does it.
void set(Event& event) {
    if (Bell* bell = event.set()) {
        bell->ring();
    }
}

TEST_CASE("what was set before is not waited for") {
    Bell bell;
    Event event;
    event.wake_by(bell);
    CHECK_FALSE(event.is_set());
    CHECK(event.set() == nullptr);  // nobody sleeps
    CHECK(event.is_set());
    CHECK(event.wait_until(0));
}

TEST_CASE("who waits in vain is told so, not too early") {
    Bell bell;
    Event event;
    event.wake_by(bell);
    const auto end = steady_now().count() + 2000;
    CHECK_FALSE(event.wait_until(end));
    CHECK(steady_now().count() >= end);
    set(event);
    CHECK(event.wait_until(0));
}

TEST_CASE("a waiter may destroy the event as soon as it sees it set") {
    Bell bell;
    std::atomic<Event*> shared{nullptr};
    std::thread setter([&] {
        for (int i = 0; i < 20'000; ++i) {
            Event* event = nullptr;
            while ((event = shared.exchange(nullptr)) == nullptr) {
                std::this_thread::yield();
            }
            set(*event);
        }
    });
    for (int i = 0; i < 20'000; ++i) {
        std::optional<Event> event(std::in_place);
        event->wake_by(bell);
        shared = &*event;
        CHECK(event->wait_until(steady_now().count() + 60'000'000));
    }
    setter.join();
}

TEST_CASE("one bell wakes all whose events are set, and the others sleep on") {
    for (int round = 0; round < 100; ++round) {
        Bell bell;
        std::array<Event, 4> events;
        for (Event& event : events) {
            event.wake_by(bell);
        }
        std::atomic<int> awake{0};
        std::vector<std::thread> waiters;
        for (Event& event : events) {
            waiters.emplace_back([&] { awake += event.wait_until(steady_now().count() + 60'000'000) ? 1 : 0; });
        }
        for (std::size_t i = 0; i < 3; ++i) {
            static_cast<void>(events[i].set());
        }
        bell.ring();
        for (std::size_t i = 0; i < 3; ++i) {
            waiters[i].join();
        }
        CHECK(awake == 3);
        set(events[3]);
        waiters[3].join();
        CHECK(awake == 4);
    }
}

TEST_CASE("those who come together share a bell, sixteen at most") {
    Bells bells;
    Bell* const first = &bells.take();
    CHECK(&bells.take() == first);
    bells.move_on();
    Bell* const second = &bells.take();
    CHECK(second != first);
    for (int i = 1; i < 16; ++i) {
        CHECK(&bells.take() == second);
    }
    CHECK(&bells.take() != second);
}

}  // namespace
