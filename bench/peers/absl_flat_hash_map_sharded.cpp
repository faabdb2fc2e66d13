// SPDX-License-Identifier: MIT
// Peer: absl::flat_hash_map in 64 mutexed shards.
#include <string>

#include <absl/container/flat_hash_map.h>

#include "hash.hpp"
#include "loops.hpp"
#include "peer.hpp"
#include "sharded.hpp"
#include "token_bucket.hpp"

namespace bench {

using AbslMap = absl::flat_hash_map<std::string, TokenBucket, KeyHash, KeyEqual>;

const Peer absl_peer = make_peer<Sharded<AbslMap>>("absl::flat_hash_map");

}  // namespace bench
