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

    /// Runs when it returns: the slots are spread evenly, replica i is that of master i.
    explicit RedisCluster(std::size_t masters, std::size_t replicas = 0) : masters_(masters) {
        for (std::size_t i = 0; i < masters + replicas; ++i) {
            add_server();
        }
        for (std::size_t i = 0; i < masters; ++i) {
            const auto first = slots * static_cast<int>(i) / static_cast<int>(masters);
            const auto last = slots * static_cast<int>(i + 1) / static_cast<int>(masters) - 1;
            ask(i, "CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last));
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
        await_agreement();
    }

    [[nodiscard]] RedisServer& server(std::size_t number) { return *servers_[number]; }
    [[nodiscard]] std::size_t size() const { return servers_.size(); }
    [[nodiscard]] int port(std::size_t number) const { return servers_[number]->port(); }

    /// The url of a gateway that knows these servers.
    [[nodiscard]] std::string url() const {
        std::string url = "redis+cluster://";
        for (std::size_t i = 0; i < masters_; ++i) {
            url += (i > 0 ? ",127.0.0.1:" : "127.0.0.1:") + std::to_string(port(i));
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
                ask(from, "MIGRATE", "127.0.0.1", std::to_string(port(to)), key.text, "0", "5000");
            }
        }
        between();
        for (const std::size_t each : {to, from}) {
            ask(each, "CLUSTER", "SETSLOT", number, "NODE", to_id);
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
        servers_.push_back(std::make_unique<RedisServer>(std::vector<std::string>{"--cluster-enabled",
                                                                                  "yes",
                                                                                  "--cluster-port",
                                                                                  std::to_string(bus_ports_.back()),
                                                                                  "--cluster-node-timeout",
                                                                                  "1000"}));
        ask(servers_.size() - 1, "CLUSTER", "SET-CONFIG-EPOCH", std::to_string(servers_.size()));
    }

    void meet(std::size_t number) {
        ask(0, "CLUSTER", "MEET", "127.0.0.1", std::to_string(port(number)), std::to_string(bus_ports_[number]));
    }

    [[nodiscard]] std::size_t known_nodes(std::size_t number) {
        const std::string info = ask(number, "CLUSTER", "INFO").text;
        const std::size_t at = info.find("cluster_known_nodes:");
        return at == std::string::npos ? 0 : std::stoul(info.substr(at + 20));
    }

    std::size_t masters_;
    std::vector<std::unique_ptr<RedisServer>> servers_;
    std::vector<int> bus_ports_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_REDIS_CLUSTER_HPP
