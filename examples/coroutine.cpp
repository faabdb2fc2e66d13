// SPDX-License-Identifier: MIT
// Checks in coroutines: `co_await limiter.async_check(key)` reads like a call and blocks no thread.
#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include "redis_server.hpp"
#include "support.hpp"

#include <chrono>
#include <coroutine>
#include <exception>
#include <semaphore>
#include <string>

namespace {

using namespace std::chrono_literals;
using Limiter =
    penstock::Limiter<penstock::AllOf<penstock::TokenBucket, penstock::FixedWindow>, penstock::RedisStorage>;

/// The least that a coroutine needs: it starts at once, and nobody awaits it.
struct Task {
    struct promise_type {
        static Task get_return_object() { return {}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_never final_suspend() noexcept { return {}; }
        static void return_void() {}
        [[noreturn]] static void unhandled_exception() { std::terminate(); }
    };
};

/// A client's requests, one after the other.
Task serve(Limiter& limiter, std::string client, int requests, std::binary_semaphore& served) {
    const support::Table table{"client", "request", "allowed", "remaining"};
    for (int request = 1; request <= requests; ++request) {
        const penstock::Decision decision = co_await limiter.async_check(client);
        table.row(client, std::to_string(request), decision.allowed, decision.remaining);
    }
    served.release();
}

}  // namespace

int main() {
    const support::RedisServer server;
    std::binary_semaphore served{0};  // outlives the limiter, on whose thread it is released
    Limiter limiter{penstock::AllOf{penstock::TokenBucket{.capacity = 3, .refill = penstock::per_hour(1)},
                                    penstock::FixedWindow{.limit = 1000, .window = 24h}},
                    penstock::RedisStorage{{.url = server.url(), .timeout = 5s}}};
    serve(limiter, "user:1", 4, served);
    served.acquire();
}
