// SPDX-License-Identifier: MIT
// Server: a redis-server of the benchmark's own, and what it says about itself.
#ifndef PENSTOCK_BENCH_REDIS_SERVER_HPP
#define PENSTOCK_BENCH_REDIS_SERVER_HPP

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../tests/support/redis_client.hpp"
#include "../../tests/support/redis_server.hpp"
#include "../report.hpp"
#include "script.hpp"

namespace bench {

class Server {
public:
    explicit Server(std::vector<std::string> options = {}) : server_{std::move(options)}, client_{server_.port()} {}

    [[nodiscard]] int port() const { return server_.port(); }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port()); }

    template <class... Words>
    support::Reply operator()(const Words&... words) {
        return client_(words...);
    }

    void load(const Script& script) {
        const support::Reply reply = client_("SCRIPT", "LOAD", script.text());
        if (reply.is(support::Reply::Kind::error)) throw WrongAnswer{reply.text};
    }

    /// Of all its threads, in nanoseconds.
    [[nodiscard]] double processor_time() {
        const std::string info = client_("INFO", "cpu").text;
        return (number_in(info, "used_cpu_user:") + number_in(info, "used_cpu_sys:")) * 1e9;
    }

    [[nodiscard]] double used_memory() { return number_in(client_("INFO", "memory").text, "used_memory:"); }

    [[nodiscard]] double keys() { return number_in(client_("INFO", "keyspace").text, "keys="); }
    [[nodiscard]] double keys_that_expire() { return number_in(client_("INFO", "keyspace").text, "expires="); }

    /// One that was started as a member of a cluster becomes all of it.
    void take_all_slots() {
        client_("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
        while (client_("CLUSTER", "INFO").text.find("cluster_state:ok") == std::string::npos) {
            if (std::chrono::steady_clock::now() > end) throw std::runtime_error{"the cluster does not get ready"};
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
    }

private:
    [[nodiscard]] static double number_in(const std::string& info, const std::string& label) {
        const std::size_t at = info.find(label);
        if (at == std::string::npos) throw WrongAnswer{"the server's INFO has no " + label};
        return std::stod(info.substr(at + label.size(), 32));
    }

    support::RedisServer server_;
    support::RedisClient client_;
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_SERVER_HPP
