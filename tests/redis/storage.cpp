// SPDX-License-Identifier: MIT
// RedisStorage over a real server: every way to ask, what copies share, what gateways agree on, and how they get in.
#include <penstock/storage/redis.hpp>

#include "../support/expect.hpp"
#include "../support/fault.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/limiter.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using fault::await;
using penstock::Check;
using penstock::Decision;
using penstock::Layout;
using penstock::Limiter;
using penstock::per_hour;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::Pause;
using support::RedisClient;
using support::RedisServer;
using Redis = Limiter<TokenBucket, RedisStorage>;

constexpr std::array<Layout, 2> layouts{Layout::packed, Layout::per_key};

RedisServer& server() {
    static RedisServer shared({"--unixsocket", "socket", "--unixsocketperm", "700"});
    return shared;
}

RedisStorage::Options options_of(const RedisServer& on, Layout layout = Layout::packed) {
    static int count = 0;
    return {.url = "redis://127.0.0.1:" + std::to_string(on.port()),
            .timeout = 20s,
            .prefix = "storage-" + std::to_string(++count),
            .layout = layout,
            .expected_entries = 1000,
            .on_failure = penstock::Deny{}};
}

TokenBucket bucket(std::uint64_t capacity) {
    return {.capacity = capacity, .refill = per_hour(1)};
}

/// A coroutine; it may be destroyed while it is suspended, also at its end.
struct Task {
    struct promise_type {
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this), ended}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static auto final_suspend() noexcept {
            struct Tell : std::suspend_always {
                static void await_suspend(std::coroutine_handle<promise_type> handle) noexcept {
                    const std::shared_ptr<std::atomic<bool>> end = handle.promise().ended;
                    *end = true;  // and now the coroutine may be gone
                }
            };
            return Tell{};
        }
        static void return_void() noexcept {}
        [[noreturn]] static void unhandled_exception() { std::terminate(); }

        std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
    };

    std::coroutine_handle<promise_type> handle;
    std::shared_ptr<std::atomic<bool>> ended;
};

TEST_CASE("threads that hammer one key admit exactly the limit") {
    for (const Layout layout : layouts) {
        Redis limiter{bucket(2000), RedisStorage(options_of(server(), layout))};
        const auto admitted =
            threads::results_of(8, [&](std::size_t) { return expect::allowed_of(500, limiter, "key"); });
        std::uint64_t sum = 0;
        for (const std::uint64_t each : admitted) {
            sum += each;
        }
        CHECK(sum == 2000);
        CHECK(limiter.check("key") == rejected().remaining(0));
    }
}

TEST_CASE("scripts flushed under load cost no check and double none") {
    RedisServer own;
    for (const Layout layout : layouts) {
        Redis limiter{bucket(6000), RedisStorage(options_of(own, layout))};
        std::atomic<int> running{4};
        std::atomic<std::uint64_t> failures{0};
        std::thread flusher([&] {
            RedisClient client(own.port());
            while (running > 0) {
                client("SCRIPT", "FLUSH");
                std::this_thread::sleep_for(50ms);
            }
        });
        std::atomic<std::uint64_t> sum{0};
        threads::together(4, [&](std::size_t) {
            for (int i = 0; i < 1700; ++i) {
                const Decision decision = limiter.check("key");
                sum += decision.allowed ? 1 : 0;
                failures += decision.source == Source::store ? 0 : 1;
            }
            --running;
        });
        flusher.join();
        CHECK(sum == 6000);
        CHECK(failures == 0);
        CHECK(limiter.storage().stats().loads >= 1);
    }
}

TEST_CASE("each of many keys has its own count, whichever threads ask") {
    for (const Layout layout : layouts) {
        Redis limiter{bucket(100), RedisStorage(options_of(server(), layout))};
        std::atomic<int> wrong{0};
        threads::together(4, [&](std::size_t thread) {
            for (std::uint64_t i = 0; i < 10; ++i) {
                for (int key = 0; key < 40; ++key) {
                    const std::string name = std::to_string(thread) + "/" + std::to_string(key);
                    wrong += limiter.check(name, 2) == allowed(98 - 2 * i) ? 0 : 1;
                }
            }
        });
        CHECK(wrong == 0);
    }
}

TEST_CASE("a batch decides in order") {
    for (const Layout layout : layouts) {
        Redis limiter{bucket(100), RedisStorage(options_of(server(), layout))};
        const std::vector<Check> checks(150, Check{.key = "key"});
        std::vector<Decision> decisions(checks.size());
        limiter.check(checks, decisions);
        for (std::size_t i = 0; i < decisions.size(); ++i) {
            CHECK(decisions[i] == (i < 100 ? allowed(99 - i) : rejected().remaining(0)));
        }
    }
}

TEST_CASE("handlers and coroutines are told what callers are told") {
    for (const Layout layout : layouts) {
        Redis limiter{bucket(1000), RedisStorage(options_of(server(), layout))};
        std::atomic<int> told{0};
        std::atomic<int> right{0};
        for (std::uint64_t i = 0; i < 100; ++i) {
            std::string key = "handler" + std::to_string(i);
            limiter.async_check(key, i, [&, i](const Decision& decision) {
                right += decision == allowed(1000 - i) ? 1 : 0;
                ++told;
            });
            key = "gone before the answer";
        }
        const auto loop = [&](std::string key) -> Task {
            for (std::uint64_t i = 1; i <= 10; ++i) {
                right += co_await limiter.async_check(key) == allowed(1000 - i) ? 1 : 0;
            }
            ++told;
        };
        std::vector<Task> tasks;
        for (int i = 0; i < 10; ++i) {
            tasks.push_back(loop("coroutine" + std::to_string(i)));
        }
        CHECK(await([&] { return told == 110; }));
        CHECK(right == 200);
        CHECK(await([&] {
            return std::all_of(tasks.begin(), tasks.end(), [](const Task& task) { return task.ended->load(); });
        }));
        for (const Task& task : tasks) {
            task.handle.destroy();
        }
    }
}

TEST_CASE("a coroutine may be destroyed while it waits") {
    Redis limiter{bucket(1000), RedisStorage(options_of(server()))};
    REQUIRE(limiter.check("warm") == allowed(999));
    std::atomic<int> resumed{0};
    const auto once = [&](std::string key) -> Task {
        (void)co_await limiter.async_check(key);
        ++resumed;
    };
    {
        const Pause pause(server());
        for (int i = 0; i < 100; ++i) {
            once("key" + std::to_string(i)).handle.destroy();
        }
    }
    CHECK(limiter.check("warm") == allowed(998));
    CHECK(resumed == 0);
    CHECK(limiter.storage().stats().cancelled == 100);
}

TEST_CASE("a limiter destroyed with checks in flight has told all by then") {
    for (int round = 0; round < 10; ++round) {
        std::atomic<int> told{0};
        std::atomic<int> resumed{0};
        std::vector<Task> tasks;
        {
            const Pause pause(server());
            Redis limiter{bucket(1000), RedisStorage(options_of(server()))};
            const auto once = [&](std::string key) -> Task {
                resumed += (co_await limiter.async_check(key)).source == Source::fail_closed ? 1 : 0;
            };
            for (int i = 0; i < 500; ++i) {
                limiter.async_check("key", 1, [&](const Decision& decision) {
                    told += decision.source == Source::fail_closed ? 1 : 0;
                });
                if (i % 10 == 0) {
                    tasks.push_back(once("key"));
                }
            }
        }
        CHECK(told == 500);
        CHECK(resumed == 50);
        for (const Task& task : tasks) {
            task.handle.destroy();
        }
    }
}

TEST_CASE("a handler may hold the last of a limiter") {
    std::atomic<int> told{0};
    {
        const auto limiter = std::make_shared<Redis>(bucket(1000), RedisStorage(options_of(server())));
        for (int i = 0; i < 100; ++i) {
            limiter->async_check("key", 1, [&told, limiter](const Decision&) { ++told; });
        }
    }
    CHECK(await([&] { return told == 100; }));
}

TEST_CASE("limiters and copies of a storage share a connection") {
    RedisServer own;
    auto options = options_of(own);
    options.client_name = "shared";
    const RedisStorage storage(options);
    const RedisStorage copy = storage;  // NOLINT(performance-unnecessary-copy-initialization)
    Redis one{bucket(10), storage};
    Redis other{bucket(10), copy};
    CHECK(one.check("key") == allowed(9));
    CHECK(other.check("key") == allowed(8));
    const std::string clients = RedisClient(own.port())("CLIENT", "LIST").text;
    const auto first = clients.find(" name=shared ");
    CHECK(first != std::string::npos);
    CHECK(clients.find(" name=shared ", first + 1) == std::string::npos);
}

TEST_CASE("gateways that expect different numbers of entries count together, and say so") {
    auto options = options_of(server());
    options.expected_entries = 1'000'000;
    Redis first{bucket(10), RedisStorage(options)};
    CHECK(first.check("key") == allowed(9));
    CHECK(first.storage().stats().disagreements == 0);
    options.expected_entries = 100;
    Redis second{bucket(10), RedisStorage(options)};
    CHECK(second.check("key") == allowed(8));
    CHECK(second.storage().stats().disagreements == 1);
    CHECK(first.check("key") == allowed(7));
}

TEST_CASE("names keep limiters on one prefix apart") {
    for (const Layout layout : layouts) {
        auto options = options_of(server(), layout);
        options.name = "one";
        Redis one{bucket(10), RedisStorage(options)};
        options.name = "other";
        Redis other{bucket(10), RedisStorage(options)};
        CHECK(one.check("key") == allowed(9));
        CHECK(other.check("key") == allowed(9));
        CHECK(one.check("key") == allowed(8));
    }
}

TEST_CASE("a unix socket leads to the same server") {
    auto options = options_of(server());
    Redis over_tcp{bucket(10), RedisStorage(options)};
    CHECK(over_tcp.check("key") == allowed(9));
    options.url = "unix://" + (server().directory() / "socket").string();
    Redis over_unix{bucket(10), RedisStorage(options)};
    CHECK(over_unix.check("key") == allowed(8));
}

TEST_CASE("a database is selected") {
    auto options = options_of(server(), Layout::per_key);
    Redis zero{bucket(10), RedisStorage(options)};
    options.url += "/3";
    Redis third{bucket(10), RedisStorage(options)};
    CHECK(zero.check("key") == allowed(9));
    CHECK(third.check("key") == allowed(9));
    RedisClient client(server().port());
    client("SELECT", "3");
    CHECK(client("DBSIZE").integer == 1);
}

TEST_CASE("a user logs in with its password") {
    RedisServer own;
    RedisClient(own.port())("ACL", "SETUSER", "gateway", "on", ">se@cret", "~*", "+@all");
    RedisClient(own.port())("CONFIG", "SET", "requirepass", "another");
    auto options = options_of(own);
    options.user = "gateway";
    options.password = "se@cret";
    Redis by_options{bucket(10), RedisStorage(options)};
    CHECK(by_options.check("key") == allowed(9));
    options.user.clear();
    options.password.clear();
    options.url = "redis://gateway:se%40cret@127.0.0.1:" + std::to_string(own.port());
    Redis by_url{bucket(10), RedisStorage(options)};
    CHECK(by_url.check("key") == allowed(8));
    options.url = "redis://:another@127.0.0.1:" + std::to_string(own.port());
    Redis without_user{bucket(10), RedisStorage(options)};
    CHECK(without_user.check("key") == allowed(7));
}

TEST_CASE("a wrong password is a defined failure, until it is right") {
    RedisServer own;
    RedisClient(own.port())("CONFIG", "SET", "requirepass", "right");
    for (const Layout layout : layouts) {
        auto options = options_of(own, layout);
        options.password = "wrong";
        options.longest_wait = 100ms;
        options.on_failure = penstock::Allow{};
        Redis limiter{bucket(10), RedisStorage(options)};
        for (int i = 0; i < 100; ++i) {
            const Decision decision = limiter.check("key" + std::to_string(i));
            CHECK(decision.allowed);
            CHECK(decision.source == Source::fail_open);
        }
        CHECK(fault::ended(limiter.storage().stats(), StoreError::wrong_password) == 100);
        RedisClient client(own.port());
        client("AUTH", "right");
        client("CONFIG", "SET", "requirepass", "wrong");
        CHECK(await([&] { return limiter.check("key").source == Source::store; }));
        client("CONFIG", "SET", "requirepass", "right");
    }
}

TEST_CASE("a ring keeps each client on one of its servers, and loses only those of one that is dead") {
    std::array<RedisServer, 3> servers;
    for (const Layout layout : layouts) {
        auto options = options_of(servers[0], layout);
        options.timeout = 2s;
        options.longest_wait = 100ms;
        options.url = "redis+ring://127.0.0.1:" + std::to_string(servers[0].port()) +
                      ",127.0.0.1:" + std::to_string(servers[1].port()) +
                      ",127.0.0.1:" + std::to_string(servers[2].port());
        Redis limiter{bucket(10), RedisStorage(options)};
        constexpr int keys = 300;
        const auto count = [&](auto condition) {
            int counted = 0;
            for (int i = 0; i < keys; ++i) {
                counted += condition(limiter.check("key" + std::to_string(i))) ? 1 : 0;
            }
            return counted;
        };
        const auto answered = [](const Decision& decision) { return decision.source == Source::store; };
        CHECK(count([](const Decision& decision) { return decision == allowed(9); }) == keys);
        CHECK(count([](const Decision& decision) { return decision == allowed(8); }) == keys);
        if (layout == Layout::per_key) {
            std::int64_t all = 0;
            for (const RedisServer& each : servers) {
                RedisClient client(each.port());
                const auto stored = static_cast<std::int64_t>(client("KEYS", options.prefix + ":*").items.size());
                CHECK(stored > keys / 5);
                all += stored;
            }
            CHECK(all == keys);
        }
        servers[1].kill();
        CHECK(await([&] {
            (void)count(answered);
            return fault::ended(limiter.storage().stats(), StoreError::unavailable) > 0;
        }));
        const int alive = count(answered);
        CHECK(alive > keys / 2);
        CHECK(alive < keys * 4 / 5);
        servers[1].restart();
        CHECK(await([&] { return count(answered) == keys; }));
    }
}

TEST_CASE("the failure policy decides what a failure means") {
    for (const bool allow : {true, false}) {
        auto options = options_of(server());
        options.url = "redis://127.0.0.1:" + std::to_string(support::free_port());
        options.on_failure = allow ? RedisStorage::OnFailure(penstock::Allow{}) : penstock::Deny{};
        Redis limiter{bucket(10), RedisStorage(options)};
        const Decision decision = limiter.check("key");
        CHECK(decision.allowed == allow);
        CHECK(decision.source == (allow ? Source::fail_open : Source::fail_closed));
        std::array<Decision, 2> batch;
        limiter.check(std::array{Check{.key = "a"}, Check{.key = "b"}}, batch);
        CHECK(batch[1].source == decision.source);
        std::atomic<int> told{0};
        limiter.async_check("key", 1, [&](const Decision& later) {
            CHECK(later.source == decision.source);
            ++told;
        });
        CHECK(await([&] { return told == 1; }));
    }
}

TEST_CASE("a handler may make blocking calls") {
    const RedisServer server;
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        Redis limiter{TokenBucket{.capacity = 10, .refill = per_hour(1)},
                      RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(server.port()),
                                    .timeout = 10s,
                                    .prefix = layout == Layout::packed ? "packed" : "per-key",
                                    .layout = layout,
                                    .on_failure = penstock::Deny{}}}};
        std::binary_semaphore done{0};
        Decision after;
        const auto begin = std::chrono::steady_clock::now();
        limiter.async_check("a", 1, [&](Decision) {
            (void)limiter.check("a", 2);
            after = limiter.refund("a", 1);
            done.release();
        });
        done.acquire();
        CHECK(after.remaining == 8);
        CHECK(std::chrono::steady_clock::now() - begin < 5s);
    }
}

TEST_CASE("handlers that ask again and again do not keep a server from being found again") {
    RedisServer server;
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> decided{0};
    std::binary_semaphore stopped{0};
    std::function<void(Decision)> again;
    Redis limiter{TokenBucket{.capacity = 1'000'000, .refill = per_hour(1)},
                  RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(server.port()), .timeout = 10s}}};
    again = [&](Decision decision) {
        decided += decision.source == Source::store ? 1 : 0;
        if (stop) {
            stopped.release();
        } else {
            limiter.async_check("a", 1, again);
        }
    };
    limiter.async_check("a", 1, again);
    CHECK(await([&] { return decided > 10; }));
    server.kill();
    server.restart();
    const std::uint64_t before = decided;
    CHECK(await([&] { return decided > before + 10; }));
    stop = true;
    stopped.acquire();
}

}  // namespace
