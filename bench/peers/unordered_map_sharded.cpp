// SPDX-License-Identifier: MIT
// Peer: std::unordered_map in 64 mutexed shards.
#include <string>
#include <unordered_map>

#include "hash.hpp"
#include "loops.hpp"
#include "peer.hpp"
#include "sharded.hpp"
#include "token_bucket.hpp"

namespace bench {

using StdMap = std::unordered_map<std::string, TokenBucket, KeyHash, KeyEqual>;

const Peer unordered_map_peer = make_peer<Sharded<StdMap>>("std::unordered_map");

}  // namespace bench
