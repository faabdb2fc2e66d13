// SPDX-License-Identifier: MIT
// 64 maps, each behind its own mutex: how a team makes a single-threaded map serve many threads.
#ifndef PENSTOCK_BENCH_PEERS_SHARDED_HPP
#define PENSTOCK_BENCH_PEERS_SHARDED_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "hash.hpp"
#include "peer.hpp"
#include "token_bucket.hpp"

namespace bench {

/// Map: from std::string to TokenBucket, with KeyHash and KeyEqual, so that a hit makes no string.
template <class Map>
class Sharded {
public:
    explicit Sharded(const Setup& setup) : limit_{setup.limit} {
        if (setup.keys == 0) return;
        // An uneven share must not make a shard grow: 6 standard deviations above the mean.
        const std::size_t share = setup.keys / shards_.size();
        std::size_t deviation = 1;
        while (deviation * deviation < share)
            ++deviation;
        for (Shard& shard : shards_) {
            shard.map.reserve(share + 6 * deviation);
        }
    }

    Answer check(std::string_view key) { return check_at(key, 1, steady_micros()); }

    Answer check_at(std::string_view key, std::uint64_t cost, std::int64_t now) {
        const HashedKey hashed{key, hash_key(key)};
        Shard& shard = shards_[hashed.hash >> 58U];
        const std::lock_guard lock{shard.mutex};
        auto found = shard.map.find(hashed);
        if (found == shard.map.end()) found = shard.map.emplace(std::string{key}, TokenBucket{}).first;
        return found->second.check(limit_, cost, now);
    }

    [[nodiscard]] std::size_t live(std::size_t /*clients*/) const {
        std::size_t sum = 0;
        for (const Shard& shard : shards_) {
            sum += shard.map.size();
        }
        return sum;
    }

private:
    struct alignas(64) Shard {
        std::mutex mutex;
        Map map;
    };

    Limit limit_;
    std::array<Shard, 64> shards_;
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_PEERS_SHARDED_HPP
