// SPDX-License-Identifier: MIT
// A limit that several processes share, in a Redis server that this program starts itself; and what happens without it.
#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include "redis_server.hpp"
#include "support.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t limit = 40;

auto shared_limiter(const std::string& url) {
    return penstock::Limiter<penstock::TokenBucket, penstock::RedisStorage>{
        penstock::TokenBucket{.capacity = limit, .refill = penstock::per_hour(1)},
        penstock::RedisStorage{{.url = url, .timeout = 5s}}};  // patient: this is no server with users who wait
}

/// What a gateway does: 25 requests of one client. Tells how many it let pass.
std::uint64_t gateway(const std::string& url) {
    auto limiter = shared_limiter(url);
    std::uint64_t allowed = 0;
    for (int request = 0; request < 25; ++request) {
        allowed += limiter.check("user:42").allowed ? 1 : 0;
    }
    return allowed;
}

/// Runs gateways as processes of their own, and adds up what they let pass.
std::uint64_t run_gateways(int count, const std::string& url) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return 0;
    for (int i = 0; i < count; ++i) {
        if (fork() == 0) {
            close(ends[0]);
            const std::uint64_t allowed = gateway(url);
            _exit(write(ends[1], &allowed, sizeof allowed) == sizeof allowed ? 0 : 1);
        }
    }
    close(ends[1]);  // so that reading ends when the last of them has
    std::uint64_t all = 0;
    for (int i = 0; i < count; ++i) {
        std::uint64_t allowed = 0;
        if (read(ends[0], &allowed, sizeof allowed) == sizeof allowed) all += allowed;
        wait(nullptr);
    }
    return all;
}

}  // namespace

int main() {
    support::RedisServer server;
    const support::Table table{"                          ", "requests", "allowed", "decided by  "};
    table.row("four gateways, one client", 100U, run_gateways(4, server.url()), "store");

    auto limiter = shared_limiter(server.url());
    penstock::Decision decision = limiter.check("user:42");
    table.row("the same client again", 1U, decision.allowed ? 1U : 0U, to_string(decision.source));
    decision = limiter.check("user:43");
    table.row("another client", 1U, decision.allowed ? 1U : 0U, to_string(decision.source));

    // Without its store a limiter stops nobody, unless it was told to: `.on_failure = penstock::Deny{}`.
    server.stop();
    decision = limiter.check("user:42");
    table.row("the server is gone", 1U, decision.allowed ? 1U : 0U, to_string(decision.source));
}
