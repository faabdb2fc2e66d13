// SPDX-License-Identifier: MIT
// RedisCluster: a real cluster of the test's own, on free loopback ports.
#ifndef PENSTOCK_TESTS_SUPPORT_REDIS_CLUSTER_HPP
#define PENSTOCK_TESTS_SUPPORT_REDIS_CLUSTER_HPP

#include "await.hpp"
#include "redis_client.hpp"
#include "redis_server.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace support {

/// Waits until a condition holds; throws after 30 seconds.
template <class Condition>
void await(const char* what, const Condition& condition) {
    if (!await(condition, std::chrono::seconds{30})) {
        throw std::runtime_error(std::string("in vain waited for ") + what);
    }
}

class RedisCluster {
public:
    static constexpr int slots = 16384;

    struct Settings {
        std::vector<std::string> options{};  ///< of all servers
        bool tls = false;                    ///< among them, and on ports for it: options have the certificate then
    };

    /// Runs when it returns: the slots are spread evenly, replica i is that of master i.
    explicit RedisCluster(std::size_t masters, std::size_t replicas = 0) : RedisCluster(masters, replicas, {}) {}

    RedisCluster(std::size_t masters, std::size_t replicas, Settings settings)
        : masters_(masters), settings_(std::move(settings)) {
        for (std::size_t i = 0; i < masters + replicas; ++i) {
            add_server();
        }
        for (std::size_t i = 0; i < masters; ++i) {
            ask(i, "CLUSTER", "ADDSLOTSRANGE", std::to_string(first_slot(i)), std::to_string(first_slot(i + 1) - 1));
        }
        for (std::size_t i = 1; i < servers_.size(); ++i) {
            meet(i);
        }
        await_agreement();
        for (std::size_t i = 0; i < replicas; ++i) {
            const std::string id = id_of(i);
            await("a replica to know its master",
                  [&] { return RedisClient(port(masters + i))("CLUSTER", "REPLICATE", id).text == "OK"; });
            await("a replica's data", [&] {
                return RedisClient(port(masters + i))("INFO", "replication").text.find("master_link_status:up") !=
                       std::string::npos;
            });
        }
        await("the replicas to be known", [&] {
            for (std::size_t i = 0; i < servers_.size(); ++i) {
                if (replicas_known_to(i) != replicas) return false;
            }
            return true;
        });
    }

    [[nodiscard]] RedisServer& server(std::size_t number) { return *servers_[number]; }
    [[nodiscard]] std::size_t size() const { return servers_.size(); }
    [[nodiscard]] int port(std::size_t number) const { return servers_[number]->port(); }

    /// The first slot that a master has in the beginning.
    [[nodiscard]] int first_slot(std::size_t master) const {
        return slots * static_cast<int>(master) / static_cast<int>(masters_);
    }

    /// The url of a gateway that knows these servers; `credentials` as in "user:password@".
    [[nodiscard]] std::string url(const std::string& credentials = {}) const {
        std::string url = (settings_.tls ? "rediss+cluster://" : "redis+cluster://") + credentials;
        for (std::size_t i = 0; i < masters_; ++i) {
            url += (i > 0 ? ",127.0.0.1:" : "127.0.0.1:") + std::to_string(peer_port(i));
        }
        return url;
    }

    template <class... Words>
    Reply ask(std::size_t number, const Words&... words) {
        return RedisClient(port(number))(words...);
    }

    [[nodiscard]] std::string id_of(std::size_t number) { return ask(number, "CLUSTER", "MYID").text; }

    /// A new master without slots.
    std::size_t grow() {
        add_server();
        meet(servers_.size() - 1);
        await("the new node to be known", [this] {
            for (std::size_t i = 0; i < servers_.size(); ++i) {
                if (known_nodes(i) != servers_.size()) return false;
            }
            return true;
        });
        return servers_.size() - 1;
    }

    /// Moves a slot with its keys, step by step as an operator's tool does; `between` runs while it is half moved.
    template <class Between>
    void migrate(int slot, std::size_t from, std::size_t to, Between between) {
        const std::string number = std::to_string(slot);
        const std::string from_id = id_of(from);
        const std::string to_id = id_of(to);
        ask(to, "CLUSTER", "SETSLOT", number, "IMPORTING", from_id);
        ask(from, "CLUSTER", "SETSLOT", number, "MIGRATING", to_id);
        between();
        for (;;) {
            const Reply keys = ask(from, "CLUSTER", "GETKEYSINSLOT", number, "100");
            if (keys.items.empty()) break;
            for (const Reply& key : keys.items) {
                ask(from, "MIGRATE", "127.0.0.1", std::to_string(peer_port(to)), key.text, "0", "5000");
            }
        }
        between();
        for (const std::size_t each : {to, from}) {
            ask(each, "CLUSTER", "SETSLOT", number, "NODE", to_id);
        }
    }

    /// Gives the slots of a master of the beginning, with their keys, to the others, which then forget it; it goes on
    /// to run. No key may be new meanwhile.
    void retire(std::size_t number) {
        const std::vector<std::size_t> heirs = others_than(number);
        const auto heir_of = [&](int slot) { return heirs[static_cast<std::size_t>(slot) % heirs.size()]; };
        for (const std::size_t heir : heirs) {
            ask(heir, "CLUSTER", "BUMPEPOCH");  // or the old owner may win a dispute about a slot
        }
        for (const Reply& key : ask(number, "KEYS", "*").items) {
            const int slot = static_cast<int>(ask(number, "CLUSTER", "KEYSLOT", key.text).integer);
            migrate(slot, number, heir_of(slot), [] {});
        }
        give_away_slots(number, heir_of);
        const std::string id = id_of(number);
        for (const std::size_t heir : heirs) {
            ask(heir, "CLUSTER", "FORGET", id);
        }
    }

    /// Every node sees a whole cluster.
    void await_agreement() {
        await("the cluster to agree", [this] {
            for (std::size_t i = 0; i < servers_.size(); ++i) {
                if (servers_[i]->pid() == 0) continue;
                const std::string info = ask(i, "CLUSTER", "INFO").text;
                if (info.find("cluster_state:ok") == std::string::npos || known_nodes(i) != servers_.size()) {
                    return false;
                }
            }
            return true;
        });
    }

private:
    void add_server() {
        bus_ports_.push_back(free_port());
        std::vector<std::string> options{"--cluster-enabled",
                                         "yes",
                                         "--cluster-port",
                                         std::to_string(bus_ports_.back()),
                                         "--cluster-node-timeout",
                                         "1000",
                                         "--repl-diskless-sync-delay",
                                         "0"};
        if (settings_.tls) {
            tls_ports_.push_back(free_port());
            options.insert(options.end(), {"--tls-port", std::to_string(tls_ports_.back())});
            options.insert(options.end(), {"--tls-cluster", "yes", "--tls-replication", "yes"});
        }
        options.insert(options.end(), settings_.options.begin(), settings_.options.end());
        servers_.push_back(std::make_unique<RedisServer>(std::move(options)));
        ask(servers_.size() - 1, "CLUSTER", "SET-CONFIG-EPOCH", std::to_string(servers_.size()));
    }

    /// Where the others, and gateways, find it.
    [[nodiscard]] int peer_port(std::size_t number) const { return settings_.tls ? tls_ports_[number] : port(number); }

    [[nodiscard]] std::vector<std::size_t> others_than(std::size_t number) const {
        std::vector<std::size_t> others;
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            if (i != number) others.push_back(i);
        }
        return others;
    }

    /// Tells all servers of the new owners at once, without the steps that slots with keys need.
    template <class NewOwner>
    void give_away_slots(std::size_t number, const NewOwner& owner_of) {
        std::vector<std::string> ids;
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            ids.push_back(id_of(i));
        }
        for (std::size_t i = 0; i < servers_.size(); ++i) {
            RedisClient client(port(i));
            for (int slot = first_slot(number); slot < first_slot(number + 1); ++slot) {
                client.add({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", ids[owner_of(slot)]});
            }
            client.flush();
            for (int slot = first_slot(number); slot < first_slot(number + 1); ++slot) {
                if (client.receive().text != "OK") throw std::runtime_error("a slot has not moved");
            }
        }
    }

    void meet(std::size_t number) {
        ask(0, "CLUSTER", "MEET", "127.0.0.1", std::to_string(peer_port(number)), std::to_string(bus_ports_[number]));
    }

    [[nodiscard]] std::size_t replicas_known_to(std::size_t number) {
        const std::string nodes = ask(number, "CLUSTER", "NODES").text;
        std::size_t count = 0;
        for (std::size_t at = nodes.find("slave "); at != std::string::npos; at = nodes.find("slave ", at + 1)) {
            ++count;
        }
        return count;
    }

    [[nodiscard]] std::size_t known_nodes(std::size_t number) {
        const std::string info = ask(number, "CLUSTER", "INFO").text;
        const std::size_t at = info.find("cluster_known_nodes:");
        return at == std::string::npos ? 0 : std::stoul(info.substr(at + 20));
    }

    std::size_t masters_;
    Settings settings_;
    std::vector<std::unique_ptr<RedisServer>> servers_;
    std::vector<int> bus_ports_;
    std::vector<int> tls_ports_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_REDIS_CLUSTER_HPP
