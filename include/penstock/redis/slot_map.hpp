// SPDX-License-Identifier: MIT
// SlotMap: which node of a cluster has which slots, as the nodes tell it.
#ifndef PENSTOCK_REDIS_SLOT_MAP_HPP
#define PENSTOCK_REDIS_SLOT_MAP_HPP

#include <penstock/config.hpp>
#include <penstock/redis/hiredis.hpp>
#include <penstock/redis/slot.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Slots that follow one another, and their master.
struct SlotRange {
    std::uint16_t first = 0;
    std::uint16_t last = 0;
    std::string host{};  ///< empty: the host of the node that was asked
    std::uint16_t port = 0;

    friend bool operator==(const SlotRange&, const SlotRange&) noexcept = default;
};

}  // namespace redis

namespace detail {

/// Walks through a flat reply.
class ReplyCursor {
public:
    explicit ReplyCursor(const redis::Reply& reply) noexcept : reply_(reply) {}

    /// The next node, if it is of that type.
    [[nodiscard]] const redis::ReplyNode* take(redis::ReplyNode::Type type) noexcept {
        const bool there = at_ < reply_.nodes.size() && reply_.nodes[at_].type == type;
        return there ? &reply_.nodes[at_++] : nullptr;
    }

    [[nodiscard]] std::optional<std::uint16_t> take_number(std::int64_t most) noexcept {
        const redis::ReplyNode* node = take(redis::ReplyNode::Type::integer);
        if (node == nullptr || node->integer < 0 || node->integer > most) {
            return {};
        }
        return static_cast<std::uint16_t>(node->integer);
    }

    /// A text, or nil as an empty one.
    [[nodiscard]] std::optional<std::string> take_text() {
        if (take(redis::ReplyNode::Type::nil) != nullptr) {
            return std::string();
        }
        const redis::ReplyNode* node = take(redis::ReplyNode::Type::text);
        return node == nullptr ? std::nullopt : std::optional(std::string(reply_.text(*node)));
    }

    /// Passes over so many values, with all that is in them.
    void skip(std::int64_t values) noexcept {
        for (; values > 0 && at_ < reply_.nodes.size(); --values) {
            const redis::ReplyNode& node = reply_.nodes[at_++];
            values += node.type == redis::ReplyNode::Type::array ? node.integer : 0;
        }
    }

private:
    const redis::Reply& reply_;
    std::size_t at_ = 0;
};

[[nodiscard]] inline std::optional<redis::SlotRange> take_range(ReplyCursor& cursor) {
    constexpr std::int64_t last_slot = redis::cluster_slots - 1;
    const redis::ReplyNode* range = cursor.take(redis::ReplyNode::Type::array);
    const auto first = range != nullptr ? cursor.take_number(last_slot) : std::nullopt;
    const auto last = first.has_value() ? cursor.take_number(last_slot) : std::nullopt;
    const redis::ReplyNode* master = last.has_value() ? cursor.take(redis::ReplyNode::Type::array) : nullptr;
    auto host = master != nullptr ? cursor.take_text() : std::nullopt;
    const auto port = host.has_value() ? cursor.take_number(65535) : std::nullopt;
    if (!port.has_value() || *port == 0 || *first > *last) {
        return {};
    }
    cursor.skip(master->integer - 2);  // its id, and what later versions tell
    cursor.skip(range->integer - 3);   // the replicas
    return redis::SlotRange{*first, *last, *host == "?" ? std::string() : std::move(*host), *port};
}

}  // namespace detail

namespace redis {

/// Reads the reply to CLUSTER SLOTS. Nothing if it is none.
[[nodiscard]] inline std::optional<std::vector<SlotRange>> parse_slots(const Reply& reply) {
    detail::ReplyCursor cursor(reply);
    const ReplyNode* all = cursor.take(ReplyNode::Type::array);
    if (all == nullptr) {
        return {};
    }
    std::vector<SlotRange> ranges;
    for (std::int64_t i = 0; i < all->integer; ++i) {
        std::optional<SlotRange> range = detail::take_range(cursor);
        if (!range.has_value()) {
            return {};
        }
        ranges.push_back(std::move(*range));
    }
    return ranges;
}

/// Not thread-safe. Look-ups are O(1).
class SlotMap {
public:
    static constexpr std::uint16_t nobody = 0xffff;

    SlotMap() noexcept { clear(); }

    void clear() noexcept { nodes_.fill(nobody); }

    void assign(std::uint16_t first, std::uint16_t last, std::uint16_t node) noexcept {
        std::fill(nodes_.begin() + first, nodes_.begin() + last + 1, node);
    }

    /// The number of the node, or nobody.
    [[nodiscard]] std::uint16_t node_of(std::uint16_t slot) const noexcept { return nodes_[slot]; }

    /// How many slots are somebody's.
    [[nodiscard]] std::size_t covered() const noexcept {
        return nodes_.size() - static_cast<std::size_t>(std::count(nodes_.begin(), nodes_.end(), nobody));
    }

private:
    std::array<std::uint16_t, cluster_slots> nodes_;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_SLOT_MAP_HPP
