// SPDX-License-Identifier: MIT
// What a client costs the server's memory, all in: on a cluster's node, which keeps more for each key than one alone.
#ifndef PENSTOCK_BENCH_REDIS_MEMORY_HPP
#define PENSTOCK_BENCH_REDIS_MEMORY_HPP

#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "../core/ours.hpp"
#include "../report.hpp"
#include "clients.hpp"
#include "fleet.hpp"
#include "options.hpp"
#include "script.hpp"
#include "server.hpp"
#include "textbook.hpp"
#include "wire.hpp"

namespace bench {

/// Every client's first check.
inline void admit_all(Wire& wire, const Script& script, std::size_t clients) {
    constexpr std::size_t at_once = 50'000;
    Ledger ledger{clients};
    for (std::size_t first = 0; first < clients; first += at_once) {
        Report::progress("memory: " + std::to_string(first) + " clients");
        std::vector<std::uint32_t> some((std::min)(at_once, clients - first));
        std::iota(some.begin(), some.end(), static_cast<std::uint32_t>(first));
        ledger.demand("filling", some, answers_of(wire, script, Batch{script, some}));
    }
}

[[nodiscard]] inline double bytes_per_client(const Script& script, std::size_t clients) {
    Server server{{"--cluster-enabled", "yes"}};
    server.take_all_slots();
    server.load(script);
    Wire wire{server.port()};
    const double before = server.used_memory();
    admit_all(wire, script, clients);
    const double grown = server.used_memory() - before;
    if (server.keys() != server.keys_that_expire()) throw WrongAnswer{"a key has no TTL"};
    return grown / static_cast<double>(clients);
}

inline void measure_memory(Report& report, const RedisOptions& options, Fleet& fleet) {
    const OurScript<penstock::TokenBucket> ours{
        bucket_of(ample_limit), penstock::Layout::packed, meta_for(options.stored)};
    const double packed = bytes_per_client(ours, options.stored);
    const double textbook = bytes_per_client(Textbook{ample_limit}, options.stored);
    const std::string what = "bytes a client, packed, " + options.many() + " clients / ";
    report.add({what + "textbook", packed, textbook, Unit::bytes, at_most(0.33)});
    report.add({what + "60 B", packed, 60, Unit::bytes, at_most(1)});
    fleet.bytes_per_client = packed;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_MEMORY_HPP
