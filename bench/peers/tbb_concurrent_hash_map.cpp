// SPDX-License-Identifier: MIT
// Peer: tbb::concurrent_hash_map, whose accessor locks the one entry.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tbb/concurrent_hash_map.h>

#include "hash.hpp"
#include "loops.hpp"
#include "peer.hpp"
#include "token_bucket.hpp"

namespace bench {
namespace {

struct HashCompare {
    using is_transparent = void;
    static std::size_t hash(std::string_view key) noexcept { return hash_key(key); }
    static bool equal(std::string_view a, std::string_view b) noexcept { return a == b; }
};

class TbbBuckets {
public:
    explicit TbbBuckets(const Setup& setup) : limit_{setup.limit}, map_{setup.keys} {}

    Answer check(std::string_view key) { return check_at(key, 1, steady_micros()); }

    Answer check_at(std::string_view key, std::uint64_t cost, std::int64_t now) {
        Map::accessor entry;
        if (!map_.find(entry, key)) map_.insert(entry, std::string{key});
        return entry->second.check(limit_, cost, now);
    }

    [[nodiscard]] std::size_t live(std::size_t /*clients*/) const { return map_.size(); }

private:
    using Map = tbb::concurrent_hash_map<std::string, TokenBucket, HashCompare>;

    Limit limit_;
    Map map_;
};

}  // namespace

const Peer tbb_peer = make_peer<TbbBuckets>("tbb::concurrent_hash_map");

}  // namespace bench
