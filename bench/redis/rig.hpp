// SPDX-License-Identifier: MIT
// Rig: a server, the library that counts in it, and the very commands the library sends, for others to send too.
#ifndef PENSTOCK_BENCH_REDIS_RIG_HPP
#define PENSTOCK_BENCH_REDIS_RIG_HPP

#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "../core/ours.hpp"
#include "../report.hpp"
#include "clients.hpp"
#include "script.hpp"
#include "server.hpp"

namespace bench {

using RedisLimiter = penstock::Limiter<penstock::TokenBucket, penstock::RedisStorage>;

/// The timeout is long: where the machine stands still for a while, the figures show it, and no check fails.
[[nodiscard]] inline penstock::RedisStorage storage_on(const Server& server,
                                                       std::size_t clients,
                                                       penstock::Layout layout = penstock::Layout::packed) {
    return penstock::RedisStorage{
        {.url = server.url(), .timeout = std::chrono::seconds{5}, .layout = layout, .expected_entries = clients}};
}

/// As the library and the server have agreed on it.
[[nodiscard]] inline penstock::redis::Meta meta_in(Server& server) {
    const auto meta = penstock::redis::parse_meta(server("GET", "penstock:meta").text);
    if (!meta.has_value()) throw WrongAnswer{"the storage has left no meta"};
    return *meta;
}

/// Connects, and loads the script.
inline void warm_up(RedisLimiter& limiter) {
    for (int attempt = 0; attempt < 500; ++attempt) {
        if (limiter.check("nobody").source == penstock::Source::store) return;
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    throw WrongAnswer{"the storage does not reach its server"};
}

struct Rig {
    explicit Rig(std::size_t clients)
        : limiter{bucket_of(ample_limit), storage_on(server, clients)}, crowd{clients, 1}, ledger{clients} {
        warm_up(limiter);
        script.emplace(bucket_of(ample_limit), penstock::Layout::packed, meta_in(server));
    }

    Server server;
    RedisLimiter limiter;
    std::optional<OurScript<penstock::TokenBucket>> script;
    Crowd crowd;
    Ledger ledger;  // one for all sides: they count the same clients in the same entries
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_RIG_HPP
