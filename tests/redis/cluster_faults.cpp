// SPDX-License-Identifier: MIT
// A cluster that changes under load: masters that die or hand over, nodes that leave, scripts that are forgotten. Each
// client is admitted exactly its limit, and what the cluster itself has lost.
#include "../support/await.hpp"
#include "../support/expect.hpp"
#include "../support/fault.hpp"
#include "../support/redis_cluster.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Layout;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::RedisCluster;

using Quota = Limiter<FixedWindow, RedisStorage>;

/// More than any load takes: the rest is taken at once, in the end.
constexpr std::uint64_t limit = 1'000'000'000;
constexpr FixedWindow quota{.limit = limit, .window = 9000h};

/// For clusters of which no node is to be taken for dead, however busy the machine is.
const RedisCluster::Settings calm{.options = {"--cluster-node-timeout", "6000"}};

/// So that a dead master's slots do not keep the others from answering, and a replica takes over whatever it has got.
const RedisCluster::Settings partial{.options = {"--cluster-node-timeout",
                                                 "3000",
                                                 "--cluster-require-full-coverage",
                                                 "no",
                                                 "--cluster-replica-validity-factor",
                                                 "0"}};

RedisStorage storage_of(const RedisCluster& cluster, Layout layout = Layout::per_key) {
    return RedisStorage{{.url = cluster.url(),
                         .timeout = 20s,
                         .stall_timeout = 20s,  // a server that waits for a processor is none that hangs
                         .prefix = layout == Layout::packed ? "packed" : "per-key",
                         .layout = layout,
                         .expected_entries = 10'000,
                         .on_failure = penstock::Deny{}}};
}

std::vector<std::string> clients_of(std::size_t count) {
    std::vector<std::string> clients;
    for (std::size_t i = 0; i < count; ++i) {
        clients.push_back("client " + std::to_string(i));
    }
    return clients;
}

int slot_of(const std::string& client) {
    return penstock::redis::slot_of("{" + client + "}");
}

/// Where the packed layout has a client, which depends on a secret in the cluster.
int packed_slot_of(RedisCluster& cluster, const std::string& client) {
    for (std::size_t node = 0; node < 3; ++node) {
        const auto meta = penstock::redis::parse_meta(cluster.ask(node, "GET", "packed:meta").text);
        if (meta.has_value()) {
            const auto place = penstock::redis::packed_place(client, meta->secret, 0, meta->buckets);
            std::string key;
            penstock::redis::append_bucket_key(key, "packed", place.bucket, penstock::redis::Time::server);
            return penstock::redis::slot_of(key);
        }
    }
    return -1;
}

/// Calls that had no answer.
template <class AnyLimiter>
std::uint64_t failures(const AnyLimiter& limiter) {
    const auto& ended = limiter.storage().stats().ended;
    return std::accumulate(ended.begin() + 1, ended.end(), std::uint64_t{0});
}

/// The number after a label in what INFO tells; 0 if it is not there.
std::uint64_t number_in(const std::string& info, std::string_view label) {
    const std::size_t at = info.find(label);
    return at == std::string::npos ? 0 : std::stoull(info.substr(at + label.size()));
}

std::uint64_t errors_of(RedisCluster& cluster, std::size_t node, const std::string& name) {
    return number_in(cluster.ask(node, "INFO", "errorstats").text, "errorstat_" + name + ":count=");
}

/// Until every client has been counted once, on whichever node.
void warm_up(Quota& limiter, const std::vector<std::string>& clients) {
    for (const std::string& client : clients) {
        support::await("the first decision", [&] { return limiter.check(client).source == Source::store; });
    }
}

void await_answers(Quota& limiter, const std::vector<std::string>& clients) {
    support::await("an answer for every client", [&] {
        return std::all_of(clients.begin(), clients.end(), [&](const std::string& client) {
            return limiter.check(client, 0).source == Source::store;
        });
    });
}

std::uint64_t used_by(Quota& limiter, const std::string& client) {
    return limit - limiter.peek(client, 0).remaining;
}

/// What is left is admitted, and nothing after it.
void check_rest(Quota& limiter, const std::string& client) {
    const std::uint64_t rest = limit - used_by(limiter, client);
    CHECK(limiter.check(client, rest) == allowed().remaining(0));
    CHECK(limiter.check(client) == rejected().remaining(0));
}

/// Threads that check for all clients in turn while it lives, and count how each fared.
class Load {
public:
    Load(Quota& limiter, const std::vector<std::string>& clients) : tallies_(clients.size()) {
        for (std::size_t thread = 0; thread < 3; ++thread) {
            threads_.emplace_back([this, &limiter, &clients, thread] {
                for (std::size_t i = thread * clients.size() / 3; !stop_; ++i) {
                    count(limiter.check(clients[i % clients.size()]), tallies_[i % clients.size()]);
                }
            });
        }
    }

    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;
    ~Load() { stop(); }

    void stop() {
        stop_ = true;
        for (std::thread& thread : threads_) {
            if (thread.joinable()) thread.join();
        }
        CHECK(wrong_ == 0);
    }

    [[nodiscard]] std::uint64_t admitted(std::size_t client) const { return tallies_[client].admitted; }
    [[nodiscard]] std::uint64_t failed(std::size_t client) const { return tallies_[client].failed; }
    [[nodiscard]] std::uint64_t failed() const { return sum(&Tally::failed); }

    /// Until the store has decided so many more.
    void await_decisions(std::uint64_t more) const {
        const std::uint64_t until = sum(&Tally::admitted) + more;
        support::await("decisions", [&] { return sum(&Tally::admitted) >= until; });
    }

private:
    struct Tally {
        std::atomic<std::uint64_t> admitted{0};
        std::atomic<std::uint64_t> failed{0};
    };

    void count(const Decision& decision, Tally& tally) {
        const bool decided = decision.source == Source::store;
        const bool right = decided ? decision.allowed && decision.limit == limit
                                   : !decision.allowed && decision.source == Source::fail_closed;
        wrong_ += right ? 0 : 1;
        (decided ? tally.admitted : tally.failed) += 1;
    }

    [[nodiscard]] std::uint64_t sum(std::atomic<std::uint64_t> Tally::*count) const {
        return std::accumulate(tallies_.begin(),
                               tallies_.end(),
                               std::uint64_t{0},
                               [&](std::uint64_t all, const auto& one) { return all + (one.*count).load(); });
    }

    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> wrong_{0};
    std::vector<Tally> tallies_;
    std::vector<std::thread> threads_;
};

/// What clients of a master were admitted that has died, and those of the others.
void check_counts(RedisCluster& cluster, Quota& limiter, const std::vector<std::string>& clients, const Load& load) {
    std::uint64_t failed = 0;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        CAPTURE(clients[i]);
        const std::uint64_t used = used_by(limiter, clients[i]);
        const std::uint64_t admitted = 1 + load.admitted(i);
        if (slot_of(clients[i]) < cluster.first_slot(1)) {
            failed += load.failed(i);
            CHECK(used > 1);
            CHECK(used <= admitted + load.failed(i));  // what was decided may have got no answer
        } else {
            CHECK(load.failed(i) == 0);
            CHECK(used == admitted);
        }
    }
    CHECK(failed > 0);
}

TEST_CASE("a master killed under load costs its own clients answers for a while, and what its replica had not got") {
    RedisCluster cluster(3, 1, partial);
    Quota limiter{quota, storage_of(cluster)};
    const std::vector<std::string> clients = clients_of(60);
    warm_up(limiter, clients);
    Load load(limiter, clients);
    load.await_decisions(3000);
    cluster.server(0).kill();
    await_answers(limiter, clients);
    load.await_decisions(3000);
    load.stop();
    check_counts(cluster, limiter, clients, load);
    const std::uint64_t failed = failures(limiter);
    CHECK(fault::ended(limiter.storage().stats(), StoreError::timeout) == 0);

    Load later(limiter, clients);
    later.await_decisions(3000);
    cluster.server(0).restart();
    support::await("the old master to follow the new one", [&] {
        return cluster.ask(0, "INFO", "replication").text.find("master_link_status:up") != std::string::npos;
    });
    later.await_decisions(3000);
    later.stop();
    CHECK(later.failed() == 0);
    CHECK(failures(limiter) == failed);
    for (const std::string& client : clients) {
        check_rest(limiter, client);
    }
}

/// Takes from each client as many as its number says, and from all of them `more`.
void take(Quota& limiter, const std::vector<std::string>& clients, std::uint64_t more) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
        for (std::uint64_t n = 0; n < i % 5 + more; ++n) {
            CHECK(limiter.check(clients[i]) == allowed());
        }
    }
}

/// Until a replica has got all that its master did so far.
void await_replica(RedisCluster& cluster, std::size_t master, std::size_t replica) {
    const auto offset = [&](std::size_t node, std::string_view label) {
        return number_in(cluster.ask(node, "INFO", "replication").text, label);
    };
    const std::uint64_t sent = offset(master, "master_repl_offset:");
    support::await("the replica", [&] { return offset(replica, "slave_repl_offset:") >= sent; });
}

/// From now on a replica gets nothing of what its master does.
void cut_off(RedisCluster& cluster, std::size_t replica) {
    cluster.ask(replica, "CONFIG", "SET", "masteruser", "nobody");
    cluster.ask(replica, "CONFIG", "SET", "masterauth", "wrong");
    cluster.ask(replica, "CLIENT", "KILL", "TYPE", "master");
    support::await("the link to break", [&] {
        return cluster.ask(replica, "INFO", "replication").text.find("master_link_status:down") != std::string::npos;
    });
}

TEST_CASE("a client is admitted its limit and exactly the updates that its new master has not got") {
    RedisCluster cluster(3, 1, partial);
    const std::vector<std::string> clients = clients_of(40);
    Quota packed{quota, storage_of(cluster, Layout::packed)};
    Quota per_key{quota, storage_of(cluster, Layout::per_key)};
    for (Quota* limiter : {&packed, &per_key}) {
        warm_up(*limiter, clients);
        take(*limiter, clients, 10);
    }
    await_replica(cluster, 0, 3);
    cut_off(cluster, 3);
    for (Quota* limiter : {&packed, &per_key}) {
        take(*limiter, clients, 0);
    }
    std::array<std::vector<int>, 2> slots;
    for (const std::string& client : clients) {
        slots[0].push_back(packed_slot_of(cluster, client));
        slots[1].push_back(slot_of(client));
    }
    cluster.server(0).kill();
    for (Quota* limiter : {&packed, &per_key}) {
        await_answers(*limiter, clients);
        for (std::size_t i = 0; i < clients.size(); ++i) {
            CAPTURE(clients[i]);
            const int slot = slots[limiter == &packed ? 0 : 1][i];
            REQUIRE(slot >= 0);
            const std::uint64_t lost = slot < cluster.first_slot(1) ? i % 5 : 0;
            CHECK(used_by(*limiter, clients[i]) == 11 + 2 * (i % 5) - lost);
            check_rest(*limiter, clients[i]);
        }
    }
}

/// Makes a replica a master, with its master's consent. Again, if that took too long on a busy machine.
void hand_over(RedisCluster& cluster, std::size_t replica) {
    for (int attempt = 0; attempt < 4; ++attempt) {
        REQUIRE(cluster.ask(replica, "CLUSTER", "FAILOVER").text == "OK");
        if (support::await([&] { return cluster.ask(replica, "ROLE").items.front().text == "master"; }, 8s)) return;
    }
    FAIL("the replica was to be a master");
}

/// What the gateway counts of a handover: redirections are followed, not told.
void check_stats(const penstock::redis::Stats& before, const penstock::redis::Stats& after) {
    const std::uint64_t answered = fault::ended(after, StoreError::none) - fault::ended(before, StoreError::none);
    CHECK(after.sent - before.sent > answered);
    CHECK(after.loads > before.loads);
    CHECK(after.losses == before.losses);
    CHECK(after.late == 0);
}

TEST_CASE("a master that hands over to its replica under load loses no check, doubles none, and is asked no more") {
    RedisCluster cluster(3, 1, calm);
    Quota limiter{quota, storage_of(cluster)};
    const std::vector<std::string> clients = clients_of(60);
    warm_up(limiter, clients);
    const penstock::redis::Stats before = limiter.storage().stats();
    Load load(limiter, clients);
    load.await_decisions(3000);
    hand_over(cluster, 3);
    CHECK(support::await([&] { return errors_of(cluster, 0, "MOVED") > 0; }));
    load.await_decisions(6000);
    load.stop();
    CHECK(load.failed() == 0);
    CHECK(failures(limiter) == 0);
    check_stats(before, limiter.storage().stats());
    const std::uint64_t moved = errors_of(cluster, 0, "MOVED");
    for (std::size_t i = 0; i < clients.size(); ++i) {
        CHECK(used_by(limiter, clients[i]) == 1 + load.admitted(i));
        check_rest(limiter, clients[i]);
    }
    CHECK(errors_of(cluster, 0, "MOVED") == moved);
    CHECK(errors_of(cluster, 0, "READONLY") == 0);
}

TEST_CASE("nobody notices that a node leaves the cluster under load") {
    RedisCluster cluster(3, 0, calm);
    Quota limiter{quota, storage_of(cluster)};
    const std::vector<std::string> clients = clients_of(60);
    warm_up(limiter, clients);
    REQUIRE(cluster.ask(2, "DBSIZE").integer > 10);
    Load load(limiter, clients);
    load.await_decisions(2000);
    cluster.retire(2);
    load.await_decisions(6000);
    cluster.server(2).kill();
    load.await_decisions(6000);
    load.stop();
    CHECK(load.failed() == 0);
    CHECK(failures(limiter) == 0);
    Quota late{quota, storage_of(cluster)};  // its url still has the node
    for (std::size_t i = 0; i < clients.size(); ++i) {
        CHECK(used_by(late, clients[i]) == 1 + load.admitted(i));
        check_rest(late, clients[i]);
    }
}

/// A batch of checks of one client: what it had left after each, the least first.
template <class AnyLimiter>
std::vector<std::uint64_t> remaining_after(AnyLimiter& limiter, std::size_t count, const std::string& client) {
    const std::vector<Check> checks(count, Check{.key = client});
    std::vector<Decision> decisions(count);
    limiter.check(checks, decisions);
    std::vector<std::uint64_t> remaining;
    for (const Decision& decision : decisions) {
        CHECK(decision == allowed());
        remaining.push_back(decision.remaining);
    }
    std::sort(remaining.begin(), remaining.end());
    return remaining;
}

/// `count` numbers from `first` on.
std::vector<std::uint64_t> each_once(std::size_t count, std::uint64_t first) {
    std::vector<std::uint64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

TEST_CASE("a moved slot is followed with its state, and then asked for at its new node") {
    RedisCluster cluster(3, 0, calm);
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        Limiter limiter{TokenBucket{.capacity = 100, .refill = penstock::per_hour(1)}, storage_of(cluster, layout)};
        CHECK(remaining_after(limiter, 10, "k") == each_once(10, 90));
        const int slot = layout == Layout::packed ? packed_slot_of(cluster, "k") : slot_of("k");
        const std::size_t from = slot < cluster.first_slot(1) ? 0 : slot < cluster.first_slot(2) ? 1 : 2;
        cluster.migrate(slot, from, (from + 1) % 3, [] {});
        CHECK(remaining_after(limiter, 50, "k") == each_once(50, 40));
        const std::uint64_t moved = errors_of(cluster, from, "MOVED");
        CHECK(moved > 0);
        for (std::uint64_t left = 40; left > 0; --left) {
            CHECK(limiter.check("k") == allowed().remaining(left - 1));
        }
        CHECK(errors_of(cluster, from, "MOVED") == moved);
        CHECK(failures(limiter) == 0);
    }
}

/// How often nodes were asked who has which slots.
std::vector<std::uint64_t> slot_queries(RedisCluster& cluster) {
    std::vector<std::uint64_t> calls;
    for (std::size_t node = 0; node < 3; ++node) {
        calls.push_back(number_in(cluster.ask(node, "INFO", "commandstats").text, "cmdstat_cluster|slots:calls="));
    }
    return calls;
}

TEST_CASE("scripts that all nodes have forgotten are loaded again, and nobody asks for the slots") {
    RedisCluster cluster(3, 0, calm);
    Quota limiter{quota, storage_of(cluster)};
    const std::vector<std::string> clients = clients_of(300);
    warm_up(limiter, clients);
    const auto for_a_while = [&] {
        // Longer than a doubt would have to wait until it is told.
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::microseconds{3 * penstock::redis::RefreshFsm::interval};
        do {
            for (const std::string& client : clients) {
                CHECK(limiter.check(client) == allowed());
            }
        } while (std::chrono::steady_clock::now() < end);
    };
    std::vector<std::uint64_t> before;
    support::await("the map to be settled", [&] {
        before = slot_queries(cluster);
        for_a_while();
        return slot_queries(cluster) == before;
    });
    const std::uint64_t loads = limiter.storage().stats().loads;
    for (std::size_t node = 0; node < 3; ++node) {
        cluster.ask(node, "SCRIPT", "FLUSH");
    }
    for_a_while();
    CHECK(limiter.storage().stats().loads == loads + 3);
    CHECK(slot_queries(cluster) == before);
    CHECK(failures(limiter) == 0);
}

TEST_CASE("no client's name takes the rules of one check to different slots") {
    RedisCluster cluster(3, 0, calm);
    std::vector<std::string> clients{"a{b}c", "}{", "{}x", "{u1}", "", "{", "}", "{}", "%7B", "{{a}}"};
    for (int i = 0; i < 1000; ++i) {
        clients.push_back("u" + std::to_string(i));
    }
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        Limiter limiter{AllOf{FixedWindow{.limit = 3, .window = 9000h}, FixedWindow{.limit = 3, .window = 8000h}},
                        storage_of(cluster, layout)};
        for (const std::string& client : clients) {
            CAPTURE(client);
            for (std::uint64_t i = 1; i <= 3; ++i) {
                CHECK(limiter.check(client) == allowed().remaining(3 - i));
            }
            CHECK(limiter.check(client) == rejected());
        }
        CHECK(failures(limiter) == 0);
    }
}

}  // namespace
