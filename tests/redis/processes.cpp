// SPDX-License-Identifier: MIT
// Several processes, and forks of processes that are at it already, share a limit exactly.
#include <penstock/storage/redis.hpp>

#include "../support/expect.hpp"
#include "../support/fault.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_cluster.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/limiter.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::allowed_of;
using penstock::Decision;
using penstock::Layout;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::Source;
using penstock::TokenBucket;
using support::RedisClient;
using support::RedisServer;
using Redis = Limiter<TokenBucket, RedisStorage>;

// In the child of a process of several threads, ThreadSanitizer starts none, and AddressSanitizer may hold a lock of
// its own for ever.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool can_fork_threads = false;
#elif defined(__has_feature)
constexpr bool can_fork_threads = !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer);
#else
constexpr bool can_fork_threads = true;
#endif

constexpr std::array<Layout, 2> layouts{Layout::packed, Layout::per_key};

/// A child that does some work, and tells a number of it. It is killed if it takes longer than 30 seconds.
class Child {
public:
    explicit Child(const std::function<std::uint64_t()>& work) {
        REQUIRE(::pipe(ends_.data()) == 0);
        pid_ = ::fork();
        REQUIRE(pid_ >= 0);
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::alarm(60);
            const std::uint64_t number = work();
            ::_exit(::write(ends_[1], &number, sizeof number) == sizeof number ? 0 : 1);
        }
        ::close(ends_[1]);
    }

    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    ~Child() {
        if (pid_ > 0) {
            (void)number();
        }
        ::close(ends_[0]);
    }

    /// Waits for its end; nothing if that was a bad one.
    std::optional<std::uint64_t> number() {
        std::uint64_t number = 0;
        pollfd polled{.fd = ends_[0], .events = POLLIN, .revents = 0};
        const bool told = ::poll(&polled, 1, 30'000) == 1 && ::read(ends_[0], &number, sizeof number) == sizeof number;
        if (!told) {
            ::kill(pid_, SIGKILL);
        }
        int status = -1;
        ::waitpid(pid_, &status, 0);
        pid_ = 0;
        return told && status == 0 ? std::optional(number) : std::nullopt;
    }

private:
    std::array<int, 2> ends_{-1, -1};
    pid_t pid_ = 0;
};

std::string url_of(const RedisServer& server) {
    return "redis://127.0.0.1:" + std::to_string(server.port());
}

RedisStorage::Options options_at(const std::string& url, Layout layout) {
    return {.url = url, .timeout = 20s, .layout = layout, .expected_entries = 1000, .on_failure = penstock::Deny{}};
}

RedisStorage::Options options_of(const RedisServer& on, Layout layout) {
    return options_at(url_of(on), layout);
}

constexpr TokenBucket bucket{.capacity = 3000, .refill = penstock::per_hour(1)};

/// The sum over the processes of how many of their checks were admitted, which is all of the limit.
void check_that_processes_share_a_limit(const std::string& url, Layout layout) {
    std::vector<std::unique_ptr<Child>> children;
    for (int process = 0; process < 8; ++process) {
        children.push_back(std::make_unique<Child>([&] {
            Redis limiter{bucket, RedisStorage(options_at(url, layout))};
            std::atomic<std::uint64_t> admitted{0};
            threads::together(4, [&](std::size_t) { admitted += allowed_of(150, limiter, "key"); });
            return admitted.load();
        }));
    }
    std::uint64_t sum = 0;
    for (const auto& child : children) {
        const std::optional<std::uint64_t> admitted = child->number();
        REQUIRE(admitted.has_value());
        sum += *admitted;
    }
    CHECK(sum == bucket.capacity);
}

TEST_CASE("8 processes of 4 threads admit exactly the limit of a cluster") {
    support::RedisCluster cluster(3);
    check_that_processes_share_a_limit(cluster.url(), Layout::packed);
    check_that_processes_share_a_limit(cluster.url(), Layout::per_key);
}

TEST_CASE("8 processes of 4 threads admit exactly the limit") {
    const RedisServer server;
    for (const Layout layout : layouts) {
        RedisClient(server.port())("FLUSHALL");
        check_that_processes_share_a_limit(url_of(server), layout);
    }
}

TEST_CASE("8 processes of 4 threads admit exactly the limit while scripts are flushed") {
    const RedisServer server;
    Child flusher([&] {
        RedisClient client(server.port());
        for (std::uint64_t flushes = 0;; ++flushes) {
            if (client("GET", "stop").text == "1") {
                return flushes;
            }
            client("SCRIPT", "FLUSH");
            std::this_thread::sleep_for(5ms);
        }
    });
    for (const Layout layout : layouts) {
        RedisClient(server.port())("FLUSHALL");
        check_that_processes_share_a_limit(url_of(server), layout);
    }
    RedisClient client(server.port());
    client("SET", "stop", "1");
    CHECK(flusher.number() >= 1U);
    // More than each process loads in each layout anyway: scripts were missed under way.
    const std::string stats = client("INFO", "commandstats").text;
    const std::string label = "cmdstat_script|load:calls=";
    REQUIRE(stats.find(label) != std::string::npos);
    CHECK(std::stoul(stats.substr(stats.find(label) + label.size())) > 16);
}

TEST_CASE("a child forked with calls in flight has a connection of its own, and leaves the parent's alone" *
          doctest::skip(!can_fork_threads)) {
    const RedisServer server;
    for (const Layout layout : layouts) {
        RedisClient client(server.port());
        client("FLUSHALL");
        Redis limiter{bucket, RedisStorage(options_of(server, layout))};
        REQUIRE(limiter.check("warm") == allowed(2999));
        std::atomic<bool> stop{false};
        std::atomic<int> failures{0};
        std::atomic<int> told{0};
        int asked = 0;
        std::thread load([&] {
            while (!stop) {
                failures += limiter.check("load").source == Source::store ? 0 : 1;
            }
        });
        for (int round = 0; round < 5; ++round) {
            const std::string name = std::to_string(round);
            for (int i = 0; i < 100; ++i, ++asked) {
                limiter.async_check("flight", 0, [&](const Decision& decision) {
                    failures += decision.source == Source::store ? 0 : 1;
                    ++told;
                });
            }
            Child child([&] {
                // A thread of the child may get the memory of one that was the parent's.
                std::atomic<bool> go{false};
                std::thread other([&] {
                    while (!go) {
                        std::this_thread::yield();
                    }
                });
                std::uint64_t right = 0;
                for (std::uint64_t i = 0; i < 20; ++i) {
                    right += limiter.check("child" + name) == allowed(2999 - i) ? 1 : 0;
                }
                std::atomic<int> handled{0};
                limiter.async_check("handled" + name, 1, [&](const Decision& decision) {
                    right += decision == allowed(2999) ? 1 : 0;
                    ++handled;
                });
                go = true;
                other.join();
                return fault::await([&] { return handled == 1; }) ? right : 0;
            });
            for (std::uint64_t i = 0; i < 20; ++i) {
                CHECK(limiter.check("parent" + name) == allowed(2999 - i));
            }
            CHECK(child.number() == 21U);
        }
        stop = true;
        load.join();
        CHECK(fault::await([&] { return told == asked; }));
        CHECK(failures == 0);
        CHECK(limiter.storage().stats().losses == 0);
        CHECK(limiter.storage().stats().connects == 1);
    }
}

TEST_CASE("a child that never uses the engine destroys it in peace") {
    const RedisServer server;
    std::optional<Redis> limiter(std::in_place, bucket, RedisStorage(options_of(server, Layout::packed)));
    REQUIRE(limiter->check("key") == allowed(2999));
    const std::ptrdiff_t open = fault::open_files();
    Child child([&] {
        limiter.reset();
        return static_cast<std::uint64_t>(fault::open_files());
    });
    const auto left = child.number();
    REQUIRE(left.has_value());
    CHECK(static_cast<std::ptrdiff_t>(*left) <= open + 2 - 3);  // with its pipe, without connection and waker
    CHECK(limiter->check("key") == allowed(2998));
}

TEST_CASE("a child of a child counts, too" * doctest::skip(!can_fork_threads)) {
    const RedisServer server;
    Redis limiter{bucket, RedisStorage(options_of(server, Layout::packed))};
    REQUIRE(limiter.check("key") == allowed(2999));
    Child child([&] {
        const std::uint64_t first = limiter.check("key").remaining;
        Child grandchild([&] { return limiter.check("key").remaining; });
        return first * 10'000 + grandchild.number().value_or(0);
    });
    CHECK(child.number() == 29'982'997U);
    CHECK(limiter.check("key") == allowed(2996));
}

}  // namespace
