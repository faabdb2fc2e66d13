// SPDX-License-Identifier: MIT
// Ring: which of several independent nodes has a key.
#ifndef PENSTOCK_REDIS_RING_HPP
#define PENSTOCK_REDIS_RING_HPP

#include <penstock/config.hpp>
#include <penstock/hash.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Spreads keys evenly over nodes, by the nodes' names only: every process maps alike, whatever order the names come
/// in, on every machine and in every version of one major. A node added to N takes 1/(N+1) of each other's keys; no
/// other key moves, nor does any but its own when a node leaves. The mapping is public: who chooses keys can choose
/// nodes. Thread-safe. Source: rendezvous hashing, Thaler and Ravishankar, "Using name-based mappings to increase hit
/// rates" (1998).
class Ring {
public:
    /// One or more nodes, each name once.
    explicit Ring(std::span<const std::string> nodes) {
        nodes_.reserve(nodes.size());
        for (std::size_t index = 0; index < nodes.size(); ++index) {
            nodes_.push_back({detail::hash_pair(nodes[index], seed), index});
        }
        // Of nodes that score alike the first wins: by name, or the order given would matter.
        std::sort(nodes_.begin(), nodes_.end(), [&](const Node& a, const Node& b) {
            return nodes[a.index] < nodes[b.index];
        });
    }

    /// The position of the key's node among those given. O(nodes), about 1 ns each; no allocation.
    [[nodiscard]] std::size_t node_of(std::string_view key) const noexcept {
        const detail::HashPair hash = detail::hash_pair(key, seed);
        std::size_t best = 0;
        std::uint64_t best_score = 0;
        for (const Node& node : nodes_) {
            const std::uint64_t score =
                detail::fold_multiply(hash.first ^ node.hash.first, hash.second ^ node.hash.second);
            if (score > best_score) {
                best_score = score;
                best = node.index;
            }
        }
        return best;
    }

private:
    struct Node {
        detail::HashPair hash;
        std::size_t index;
    };

    static constexpr std::uint64_t seed = detail::pi_2;

    std::vector<Node> nodes_;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_RING_HPP
