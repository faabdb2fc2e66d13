// SPDX-License-Identifier: MIT
// Coroutines that wait for a handler to be called: at once, later, on another thread, or never.
#include <penstock/detail/awaitable.hpp>

#include "../../support/flaky_storage.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <string_view>
#include <thread>
#include <utility>

namespace {

using penstock::Decision;
using penstock::Micros;
using penstock::Op;
using penstock::StoreError;
using penstock::TokenBucket;
using penstock::detail::Awaitable;
using support::FlakyStorage;

constexpr TokenBucket bucket{.capacity = 10, .refill = penstock::per_hour(1)};

/// A coroutine that its owner may destroy.
struct Task {
    struct promise_type {
        Task get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_always final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        static void unhandled_exception() noexcept {}
    };

    std::coroutine_handle<promise_type> handle;
};

template <class Bound>
Task ask(Bound& bound, std::atomic<std::uint64_t>& remaining) {
    const Decision decision =
        co_await Awaitable<Bound, TokenBucket>(bound, Op::check, "a", penstock::plan(bucket), 0, 1);
    remaining = decision.remaining;
}

TEST_CASE("a coroutine goes on when the handler is called") {
    const FlakyStorage store;
    FlakyStorage::Bound<TokenBucket> bound(store);
    std::atomic<std::uint64_t> remaining{0};
    const Task task = ask(bound, remaining);
    CHECK_FALSE(task.handle.done());
    CHECK(store.answer());
    CHECK(task.handle.done());
    CHECK(remaining == 9);
    task.handle.destroy();
}

TEST_CASE("a coroutine that is destroyed while it waits is told nothing") {
    const FlakyStorage store;
    FlakyStorage::Bound<TokenBucket> bound(store);
    std::atomic<std::uint64_t> remaining{0};
    ask(bound, remaining).handle.destroy();
    CHECK(store.answer());
    CHECK(remaining == 0);
}

/// Calls handlers before it returns.
struct AtOnce {
    template <class Handler>
    static void async_apply(
        Op, std::string_view, const penstock::Plan<TokenBucket>&, Micros, std::uint64_t, Handler handler) noexcept {
        handler(StoreError::none, Decision{.allowed = true, .remaining = 5});
    }
};

TEST_CASE("a handler that is called at once suspends nobody") {
    AtOnce bound;
    std::atomic<std::uint64_t> remaining{0};
    const Task task = ask(bound, remaining);
    CHECK(task.handle.done());
    CHECK(remaining == 5);
    task.handle.destroy();
}

/// Calls handlers on a thread, while the coroutine may still be about to suspend.
struct Elsewhere {
    template <class Handler>
    void async_apply(
        Op, std::string_view, const penstock::Plan<TokenBucket>&, Micros, std::uint64_t, Handler handler) noexcept {
        thread = std::jthread([handler = std::move(handler)]() mutable {
            handler(StoreError::none, Decision{.allowed = true, .remaining = 5});
        });
    }

    std::jthread thread;
};

TEST_CASE("whichever of handler and coroutine is first, it goes on once") {
    for (int i = 0; i < 2000; ++i) {
        std::atomic<std::uint64_t> remaining{0};
        Elsewhere bound;
        const Task task = ask(bound, remaining);
        bound.thread.join();
        REQUIRE(task.handle.done());
        CHECK(remaining == 5);
        task.handle.destroy();
    }
}

}  // namespace
