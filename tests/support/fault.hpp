// SPDX-License-Identifier: MIT
// What the tests of faults share: a limiter on a port, calls that must end in time, and waiting for what must come.
#ifndef PENSTOCK_TESTS_SUPPORT_FAULT_HPP
#define PENSTOCK_TESTS_SUPPORT_FAULT_HPP

#include "await.hpp"
#include "print.hpp"
#include "redis_server.hpp"

#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/limiter.hpp>
#include <penstock/storage/redis.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace fault {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using support::await;

inline constexpr std::uint64_t limit = 1'000'000;
inline constexpr penstock::TokenBucket bucket{.capacity = limit, .refill = penstock::per_hour(1)};

/// Short times, so that tests are; expected to be kept only roughly, since machines that run tests are busy.
inline penstock::RedisStorage::Options options_of(int port) {
    return {.url = "redis://127.0.0.1:" + std::to_string(port),
            .timeout = 50ms,
            .connect_timeout = 300ms,
            .stall_timeout = 200ms,
            .longest_wait = 100ms,
            .expected_entries = 1000};
}

/// Open file descriptors of this process.
inline std::ptrdiff_t open_files() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

/// How often calls have ended so.
inline std::uint64_t ended(const penstock::redis::Stats& stats, penstock::StoreError error) {
    return stats.ended[static_cast<std::size_t>(error)];
}

/// A limiter of one bucket, whose calls are watched.
class Watched {
public:
    explicit Watched(const penstock::RedisStorage::Options& options)
        : timeout_(options.timeout), limiter_(bucket, penstock::RedisStorage(options)) {}

    penstock::Decision check(std::string_view key = "key") {
        const auto begin = Clock::now();
        const penstock::Decision decision = limiter_.check(key);
        // To find what hangs; a busy machine takes its time.
        CHECK(Clock::now() - begin < timeout_ + 1s);
        return decision;
    }

    bool answered(std::string_view key = "key") { return check(key).source == penstock::Source::store; }

    [[nodiscard]] std::uint64_t ended(penstock::StoreError error) const { return fault::ended(stats(), error); }
    [[nodiscard]] penstock::redis::Stats stats() const { return limiter_.storage().stats(); }
    [[nodiscard]] auto& limiter() { return limiter_; }

    /// Checks until the failure is the one expected.
    bool fails_with(penstock::StoreError error) {
        const std::uint64_t before = ended(error);
        return await([&] {
            (void)check();
            return ended(error) > before;
        });
    }

    /// Checks until the store answers.
    bool recovers() {
        return await([&] { return answered(); });
    }

private:
    std::chrono::microseconds timeout_;
    penstock::Limiter<penstock::TokenBucket, penstock::RedisStorage> limiter_;
};

/// Threads that check without a pause while it lives; each decision must be the store's, of that thread's own client,
/// or the policy's.
class Load {
public:
    explicit Load(Watched& watched, std::size_t threads = 2) {
        for (std::size_t i = 0; i < threads; ++i) {
            // A cost of its own tells whose answers a client gets.
            threads_.emplace_back([this, &watched, cost = i + 1, key = "load" + std::to_string(i)] {
                std::uint64_t left = limit;
                while (!stopping_) {
                    const penstock::Decision decision = watched.limiter().check(key, cost);
                    wrong_ += is_right(decision, cost, left) ? 0 : 1;
                    ++made_;
                }
            });
        }
    }

    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

    ~Load() {
        stopping_ = true;
        for (std::thread& thread : threads_) {
            thread.join();
        }
        CHECK(made_ > 0);
        CHECK(wrong_ == 0);
    }

private:
    /// What is left goes down by the costs, also of checks whose answers came too late; or the server has forgotten.
    static bool is_right(const penstock::Decision& decision, std::uint64_t cost, std::uint64_t& left) {
        if (decision.source == penstock::Source::fail_open) {
            return decision.allowed;
        }
        const bool goes_down = decision.remaining < left || decision.remaining > limit - 100 * cost;
        left = decision.remaining;
        return decision.source == penstock::Source::store && decision.allowed && decision.limit == limit && goes_down &&
               (limit - left) % cost == 0;
    }

    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> made_{0};
    std::atomic<std::uint64_t> wrong_{0};
    std::vector<std::thread> threads_;
};

}  // namespace fault

#endif  // PENSTOCK_TESTS_SUPPORT_FAULT_HPP
