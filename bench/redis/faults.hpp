// SPDX-License-Identifier: MIT
// Servers that are not well: how long a check takes, of which nothing but the timeout may be the end.
#ifndef PENSTOCK_BENCH_REDIS_FAULTS_HPP
#define PENSTOCK_BENCH_REDIS_FAULTS_HPP

#include <penstock/penstock_redis.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../../tests/support/fake_server.hpp"
#include "../../tests/support/proxy.hpp"
#include "../../tests/support/redis_client.hpp"
#include "../../tests/support/redis_cluster.hpp"
#include "../../tests/support/redis_server.hpp"
#include "../report.hpp"

namespace bench {

inline constexpr std::chrono::milliseconds fault_timeout{5};

/// Checks that end while a server does what it does, each with a client who waits.
class FaultClock {
public:
    explicit FaultClock(int port) : FaultClock("redis://127.0.0.1:" + std::to_string(port)) {}

    explicit FaultClock(const std::string& url)
        : limiter_{penstock::TokenBucket{.capacity = 1'000'000, .refill = penstock::per_hour(1)},
                   penstock::RedisStorage{{.url = url, .timeout = fault_timeout}}} {}

    void await_server() {
        while (!answered("client")) {
        }
    }

    [[nodiscard]] bool answered(std::string_view client) {
        return limiter_.check(client).source == penstock::Source::store;
    }

    /// While the server answers nothing in time. The connection is given up after a second, and made again: all of that
    /// is seen.
    void measure(Report& report, const std::string& fault) {
        using Clock = std::chrono::steady_clock;
        const Clock::time_point end = Clock::now() + std::chrono::seconds{2};
        measure(report, fault, [&](std::size_t) {
            if (answered("client")) throw WrongAnswer{fault + ": the server decides"};
            return Clock::now() < end;
        });
    }

    /// For as long as `check(i)` is true. Of those who waited: they are few where most are told at once that there is
    /// no connection.
    template <class Check>
    static void measure(Report& report, const std::string& fault, Check check) {
        using Clock = std::chrono::steady_clock;
        Report::progress(fault);
        std::vector<double> nanos{0};  // where nobody waited
        for (std::size_t i = 0;; ++i) {
            const Clock::time_point begin = Clock::now();
            const bool goes_on = check(i);
            const double took = std::chrono::duration<double, std::nano>{Clock::now() - begin}.count();
            if (took > 200'000) nanos.push_back(took);
            if (!goes_on) break;
        }
        const auto at = nanos.begin() + static_cast<std::ptrdiff_t>(nanos.size() * 99 / 100);
        std::nth_element(nanos.begin(), at, nanos.end());
        report.add({"p99 of waits, server " + fault + " / timeout",
                    *at,
                    std::chrono::duration<double, std::nano>{fault_timeout}.count(),
                    Unit::nanoseconds,
                    at_most(1.4)});  // timeout + 2 ms
    }

private:
    penstock::Limiter<penstock::TokenBucket, penstock::RedisStorage> limiter_;
};

inline void measure_real_faults(Report& report) {
    support::RedisServer server;
    FaultClock direct{server.port()};
    direct.await_server();
    server.stop();
    direct.measure(report, "hangs");
    server.resume();
    direct.await_server();
    server.kill();
    direct.measure(report, "is dead");
    server.restart();
    support::Proxy proxy{server.port()};
    FaultClock slow{proxy.port()};
    slow.await_server();
    proxy.cut_by([since = std::chrono::steady_clock::now()](std::size_t waiting) mutable {
        const auto now = std::chrono::steady_clock::now();
        const bool due = now - since > std::chrono::milliseconds{200};
        since = due ? now : since;
        return due ? waiting : 0;
    });
    slow.measure(report, "answers 200 ms late");
}

/// Servers that say at once that they cannot: the policy decides, and nobody waits.
inline void measure_refusals(Report& report) {
    support::RedisServer server;
    support::RedisClient client{server.port()};
    FaultClock clock{server.port()};
    clock.await_server();
    client("CONFIG", "SET", "maxmemory", "1");
    clock.measure(report, "is out of memory");
    client("CONFIG", "SET", "maxmemory", "0");
    clock.await_server();
    client("REPLICAOF", "127.0.0.1", "1");
    clock.measure(report, "is a replica");
    client("REPLICAOF", "NO", "ONE");
    clock.await_server();
    client("CONFIG", "SET", "requirepass", "secret");
    FaultClock{server.port()}.measure(report, "wants a password");
    client("CONFIG", "SET", "requirepass", "");
    client("ACL", "SETUSER", "poor", "on", ">secret", "~*", "+auth", "+ping");
    FaultClock{"redis://poor:secret@127.0.0.1:" + std::to_string(server.port())}.measure(report, "grants no rights");
    client("CONFIG", "SET", "busy-reply-threshold", "1");
    client.add({"EVAL", "while true do end", "0"});
    client.flush();
    clock.measure(report, "is busy with a script");
    support::RedisClient{server.port()}("SCRIPT", "KILL");
}

inline void measure_false_servers(Report& report) {
    using Connection = support::FakeServer::Connection;
    const support::FakeServer silent{[](Connection& connection) { connection.be_silent(); }};
    FaultClock{silent.port()}.measure(report, "accepts and says nothing");
    const support::FakeServer garbage{[](Connection& connection) {
        static_cast<void>(connection.send("who are you?\r\n"));
        connection.be_silent();
    }};
    FaultClock{garbage.port()}.measure(report, "answers garbage");
    const support::FakeServer half{[](Connection& connection) {
        if (!connection.greet() || connection.receive().empty()) return;
        static_cast<void>(connection.send("*3\r\n:0\r\n"));
        connection.be_silent();
    }};
    FaultClock{half.port()}.measure(report, "sends half an answer");
    const std::string mebibyte(std::size_t{1} << 20, 'x');
    const support::FakeServer endless{[&](Connection& connection) {
        if (!connection.greet() || connection.receive().empty() || !connection.send("$67108864\r\n")) return;
        for (int i = 0; i < 64 && connection.send(mebibyte); ++i) {
        }
        connection.be_silent();
    }};
    FaultClock{endless.port()}.measure(report, "sends 64 MiB");
}

/// A cluster of which a slot moves, and then a master dies: clients of all its nodes check.
inline void measure_cluster(Report& report) {
    support::RedisCluster cluster{3, 3};
    FaultClock clock{cluster.url()};
    std::vector<std::string> clients;
    for (int i = 0; i < 30; ++i) {
        clients.push_back("client " + std::to_string(i));
        while (!clock.answered(clients.back())) {
        }
    }
    const auto while_it_lasts = [&](const std::string& fault, const auto& happen) {
        std::atomic<bool> over{false};
        std::jthread events{[&] {
            happen();
            over = true;
        }};
        FaultClock::measure(report, fault, [&](std::size_t i) {
            static_cast<void>(clock.answered(clients[i % clients.size()]));
            return !over;
        });
    };
    while_it_lasts("hands slots over", [&] {
        for (int slot = 0; slot < 200; ++slot) {
            cluster.migrate(slot, 0, 1, [] {});
        }
    });
    while_it_lasts("fails over", [&] {
        cluster.server(0).kill();
        std::this_thread::sleep_for(std::chrono::seconds{5});  // the replica is elected after one or two
    });
}

inline void measure_faults(Report& report) {
    measure_real_faults(report);
    measure_refusals(report);
    measure_false_servers(report);
    measure_cluster(report);
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_FAULTS_HPP
