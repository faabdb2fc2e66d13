// SPDX-License-Identifier: MIT
// Router: which node has a client's state: of one, of a ring, of a cluster. Pure: no socket, no clock.
#ifndef PENSTOCK_REDIS_ROUTER_HPP
#define PENSTOCK_REDIS_ROUTER_HPP

#include <penstock/config.hpp>
#include <penstock/redis/call.hpp>
#include <penstock/redis/meta.hpp>
#include <penstock/redis/refresh_fsm.hpp>
#include <penstock/redis/ring.hpp>
#include <penstock/redis/settings.hpp>
#include <penstock/redis/slot.hpp>
#include <penstock/redis/slot_map.hpp>
#include <penstock/redis/url.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Not thread-safe. In a cluster the map of slots, and the meta of the store, must be learnt before the way is known.
class Router {
public:
    explicit Router(const Settings& settings)
        : kind_(settings.target.kind), ring_(names_of(settings.target)), nodes_(settings.target.endpoints.size()),
          meta_slot_(slot_of(settings.meta_key)), has_meta_(!settings.meta_key.empty()) {}

    [[nodiscard]] bool is_cluster() const noexcept { return kind_ == Target::Kind::cluster; }

    [[nodiscard]] bool knows_the_way() const noexcept {
        return !is_cluster() || (slots_known_ && (meta_.buckets != 0 || !has_meta_));
    }

    /// The number of the node, or SlotMap::nobody. Only if it knows the way.
    [[nodiscard]] std::size_t node_of(const Call& call) const {
        if (is_cluster()) {
            return slots_.node_of(call.slot(meta_));
        }
        return nodes_ == 1 ? 0 : ring_.node_of(call.key());
    }

    /// A cluster has one meta, others one in each node.
    [[nodiscard]] const Meta& meta_for(const Meta& of_node) const noexcept { return is_cluster() ? meta_ : of_node; }

    // What is to be learnt.

    [[nodiscard]] bool wants_slots(std::int64_t now) const noexcept {
        return is_cluster() && refresh_.wants_to_ask(now);
    }
    void slots_asked(std::int64_t now) noexcept { refresh_.asked(now); }
    void slots_lost() noexcept { refresh_.failed(); }

    /// A map with fewer slots than are known comes from a node that has lost the others: it is not believed.
    void learn(const SlotMap& slots, bool complete) noexcept {
        const std::size_t covered = slots.covered();
        const bool whole = covered == cluster_slots;
        if (covered > 0 && (whole || covered >= slots_.covered())) {
            slots_ = slots;
            slots_known_ = true;
        }
        refresh_.answered(complete && whole);
    }

    [[nodiscard]] bool wants_meta(std::int64_t now) const noexcept { return meta_due() <= now; }
    [[nodiscard]] std::size_t node_of_meta() const noexcept { return slots_.node_of(meta_slot_); }
    void meta_asked(std::int64_t now) noexcept {
        meta_asked_ = true;
        meta_not_before_ = now + RefreshFsm::interval;
    }
    void meta_lost() noexcept { meta_asked_ = false; }

    /// That of a cluster: no buckets until it is known.
    [[nodiscard]] Meta& meta() noexcept { return meta_; }

    void meta_answered(std::int64_t now) noexcept {
        meta_asked_ = false;
        meta_not_before_ = now + meta_renewal;
    }

    /// When it will want the slots next.
    [[nodiscard]] std::int64_t slots_due() const noexcept { return is_cluster() ? refresh_.due() : never; }

    /// When it will want the meta next, of `node_of_meta`.
    [[nodiscard]] std::int64_t meta_due() const noexcept {
        return is_cluster() && has_meta_ && slots_known_ && !meta_asked_ ? meta_not_before_ : never;
    }

    /// Whether nothing but the meta is missing to know the way.
    [[nodiscard]] bool lacks_meta_only() const noexcept { return slots_known_ && !knows_the_way(); }

    // What is not as it was learnt.

    void doubt() noexcept { refresh_.doubt(); }

    /// An answer that looks as if the node were not the slot's master any more.
    void doubt_after(StoreError error) noexcept {
        using enum StoreError;
        if (error == cluster_down || error == read_only || error == master_down || error == try_again) {
            doubt();
        }
    }

    void move(std::uint16_t slot, std::size_t node) noexcept {
        slots_.assign(slot, slot, static_cast<std::uint16_t>(node));
        doubt();
    }

private:
    static constexpr std::int64_t never = (std::numeric_limits<std::int64_t>::max)();

    [[nodiscard]] static std::vector<std::string> names_of(const Target& target) {
        std::vector<std::string> names;
        for (const Endpoint& endpoint : target.endpoints) {
            names.push_back(endpoint.path.empty() ? endpoint.host + ":" + std::to_string(endpoint.port)
                                                  : endpoint.path);
        }
        return names;
    }

    Target::Kind kind_;
    Ring ring_;
    std::size_t nodes_;
    std::uint16_t meta_slot_;
    bool has_meta_;

    RefreshFsm refresh_;
    SlotMap slots_;
    bool slots_known_ = false;
    Meta meta_;
    bool meta_asked_ = false;
    std::int64_t meta_not_before_ = 0;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_ROUTER_HPP
