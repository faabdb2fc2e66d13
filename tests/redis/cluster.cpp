// SPDX-License-Identifier: MIT
// A cluster: every client's state on the node that has its slot, wherever that goes, under load.
#include "../support/redis_cluster.hpp"
#include "../support/threads.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::Layout;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::RedisCluster;

using Fleet = Limiter<TokenBucket, RedisStorage>;

constexpr std::uint64_t limit = 20;
constexpr TokenBucket bucket{.capacity = limit, .refill = penstock::per_hour(1)};

RedisStorage storage_of(const std::string& url, Layout layout) {
    return RedisStorage{
        {.url = url, .timeout = 10s, .layout = layout, .expected_entries = 10'000, .on_failure = penstock::Deny{}}};
}

std::uint64_t ended(Fleet& limiter, StoreError error) {
    return limiter.storage().stats().ended[static_cast<std::size_t>(error)];
}

/// Keys of the store, over all nodes.
std::size_t keys(RedisCluster& cluster, std::size_t node) {
    return static_cast<std::size_t>(cluster.ask(node, "DBSIZE").integer);
}

TEST_CASE("clients are spread over the nodes of a cluster, and each has exactly its limit") {
    RedisCluster cluster(3);
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        Fleet limiter{bucket, storage_of(cluster.url(), layout)};
        constexpr std::size_t clients = 300;
        const auto counts = threads::results_of(4, [&](std::size_t) {
            std::vector<std::uint64_t> mine(clients);
            for (std::uint64_t round = 0; round < limit / 2; ++round) {
                for (std::size_t client = 0; client < clients; ++client) {
                    mine[client] += limiter.check("client " + std::to_string(client)).allowed ? 1 : 0;
                }
            }
            return mine;
        });
        std::vector<std::uint64_t> all(clients);
        for (const auto& mine : counts) {
            std::transform(all.begin(), all.end(), mine.begin(), all.begin(), std::plus<>{});
        }
        CHECK(all == std::vector<std::uint64_t>(clients, limit));
        for (std::size_t node = 0; node < 3; ++node) {
            CHECK(keys(cluster, node) > 10);
        }
        CHECK(ended(limiter, StoreError::none) == 4 * clients * limit / 2);
    }
}

TEST_CASE("one server of a cluster is enough to find the others") {
    RedisCluster cluster(3);
    Fleet limiter{bucket, storage_of("redis+cluster://127.0.0.1:" + std::to_string(cluster.port(1)), Layout::per_key)};
    for (int client = 0; client < 50; ++client) {
        CHECK(limiter.check("client " + std::to_string(client)).source == Source::store);
    }
    Fleet other{
        bucket,
        storage_of("redis+cluster://127.0.0.1:1,127.0.0.1:" + std::to_string(cluster.port(2)), Layout::per_key)};
    CHECK(other.check("client 1", limit).remaining == limit - 1);
}

/// Checks from several threads until it is told to stop; counts what one client was allowed, and the rest.
class Load {
public:
    explicit Load(Fleet& limiter) {
        for (int thread = 0; thread < 3; ++thread) {
            threads_.emplace_back([this, &limiter, thread] {
                for (std::uint64_t i = 0; !stop_; ++i) {
                    const bool shared = i % 4 == 0;
                    const Decision decision = limiter.check(
                        shared ? "shared" : "client " + std::to_string(thread) + "-" + std::to_string(i % 200));
                    allowed_ += shared && decision.allowed ? 1 : 0;
                    (decision.source == Source::store ? decided_ : failed_) += 1;
                }
            });
        }
    }

    ~Load() { stop(); }

    void stop() {
        stop_ = true;
        for (std::thread& thread : threads_) {
            if (thread.joinable()) thread.join();
        }
    }

    [[nodiscard]] std::uint64_t allowed() const { return allowed_; }
    [[nodiscard]] std::uint64_t decided() const { return decided_; }
    [[nodiscard]] std::uint64_t failed() const { return failed_; }

    /// Until so many more were decided.
    void await_decisions(std::uint64_t more) const {
        const std::uint64_t until = decided_ + more;
        support::await("decisions", [&] { return decided_ >= until; });
    }

private:
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> allowed_{0};
    std::atomic<std::uint64_t> decided_{0};
    std::atomic<std::uint64_t> failed_{0};
    std::vector<std::thread> threads_;
};

TEST_CASE("a slot that moves is followed with its state, while it moves and after, and nobody notices") {
    RedisCluster cluster(2);
    Fleet limiter{bucket, storage_of(cluster.url(), Layout::per_key)};
    REQUIRE(limiter.check("shared", limit / 2).allowed);
    const int slot = penstock::redis::slot_of("{shared}");
    const std::size_t from = slot < RedisCluster::slots / 2 ? 0 : 1;
    Load load(limiter);
    load.await_decisions(200);
    cluster.migrate(slot, from, 1 - from, [&] { load.await_decisions(500); });
    load.await_decisions(1000);
    load.stop();
    CHECK(load.allowed() == limit / 2);
    CHECK(load.failed() == 0);
    CHECK(keys(cluster, 1 - from) > 0);
    CHECK(limiter.check("shared").allowed == false);
}

TEST_CASE("a node that joins under load gets its share, and nobody notices") {
    RedisCluster cluster(2);
    Fleet limiter{bucket, storage_of(cluster.url(), Layout::packed)};
    Load load(limiter);
    load.await_decisions(500);
    const std::size_t fresh = cluster.grow();
    for (int slot = 0; slot < 200; ++slot) {
        cluster.migrate(slot * 16, 0, fresh, [] {});
    }
    load.await_decisions(1000);
    load.stop();
    CHECK(load.allowed() == limit);
    CHECK(load.failed() == 0);
}

/// Whether the replica of a master has all that the master has.
bool is_replicated(RedisCluster& cluster, std::size_t master) {
    const std::string info = cluster.ask(master, "INFO", "replication").text;
    const auto number_after = [&info](const std::string& label) {
        const std::size_t at = info.find(label);
        return at == std::string::npos ? 0 : std::stoull(info.substr(at + label.size()));
    };
    return number_after(",offset=") == number_after("master_repl_offset:");
}

TEST_CASE("when a master dies its replica takes over, and only its clients get the policy meanwhile") {
    RedisCluster cluster(3, 3);
    Fleet limiter{
        bucket,
        RedisStorage{
            {.url = cluster.url(), .timeout = 200ms, .layout = Layout::per_key, .on_failure = penstock::Deny{}}}};
    std::vector<std::string> clients;
    for (int i = 0; i < 60; ++i) {
        clients.push_back("client " + std::to_string(i));
        support::await("the first decision", [&] { return limiter.check(clients.back()).source == Source::store; });
    }
    support::await("the replica's data", [&] { return is_replicated(cluster, 0); });
    cluster.server(0).kill();
    std::size_t lost = 0;
    for (const std::string& client : clients) {
        const bool of_the_dead = penstock::redis::slot_of("{" + client + "}") < RedisCluster::slots / 3;
        const Source source = limiter.check(client).source;
        lost += of_the_dead ? 1 : 0;
        if (!of_the_dead) CHECK(source == Source::store);
    }
    CHECK(lost > 0);
    support::await("the replica to take over", [&] {
        return std::all_of(clients.begin(), clients.end(), [&](const std::string& client) {
            return limiter.check(client, 0).source == Source::store;
        });
    });
    for (const std::string& client : clients) {
        CHECK(limiter.peek(client, 0).remaining < limit);  // what the replica had got is remembered
    }
}

TEST_CASE("a cluster that lost a node without a replica says so, and the rest goes on") {
    RedisCluster cluster(3);
    cluster.ask(1, "CONFIG", "SET", "cluster-require-full-coverage", "no");
    cluster.ask(2, "CONFIG", "SET", "cluster-require-full-coverage", "no");
    Fleet limiter{bucket, RedisStorage{{.url = cluster.url(), .timeout = 200ms, .layout = Layout::per_key}}};
    support::await("the first decision", [&] { return limiter.check("warm up").source == Source::store; });
    cluster.server(0).kill();
    std::size_t open = 0;
    for (int i = 0; i < 90; ++i) {
        const std::string client = "client " + std::to_string(i);
        const Decision decision = limiter.check(client);
        CHECK(decision.allowed);
        open += decision.source == Source::fail_open ? 1 : 0;
        if (penstock::redis::slot_of("{" + client + "}") >= RedisCluster::slots / 3 + 1) {
            CHECK(decision.source == Source::store);
        }
    }
    CHECK(open > 0);
}

TEST_CASE("gateways that start at the same moment agree on the secret of a cluster") {
    RedisCluster cluster(3);
    const auto allowed = threads::results_of(8, [&](std::size_t) {
        Fleet limiter{bucket, storage_of(cluster.url(), Layout::packed)};
        std::uint64_t mine = 0;
        for (std::uint64_t i = 0; i < limit; ++i) {
            mine += limiter.check("shared").allowed ? 1 : 0;
        }
        return mine;
    });
    CHECK(std::accumulate(allowed.begin(), allowed.end(), std::uint64_t{0}) == limit);
}

}  // namespace
