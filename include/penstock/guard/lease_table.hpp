// SPDX-License-Identifier: MIT
// LeaseTable: the leases of a bounded number of clients, in the order of their last use.
#ifndef PENSTOCK_GUARD_LEASE_TABLE_HPP
#define PENSTOCK_GUARD_LEASE_TABLE_HPP

#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/guard/lease.hpp>
#include <penstock/plan.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Units that are to be given back.
template <class Algorithm>
struct LeaseReturn {
    std::string key;
    Plan<Algorithm> plan;
    std::uint64_t units;
};

/// A key and its hash, reckoned once.
struct HashedKey {
    std::string_view key;
    std::uint64_t hash;

    friend bool operator==(const HashedKey& a, const HashedKey& b) noexcept {
        return a.hash == b.hash && a.key == b.key;
    }
};

/// The clients of one shard. Those that are in use stand before those that rest, which hold nothing. Not thread-safe.
/// All O(1); it allocates only for a client that it does not know, and for what is to be given back.
template <class Algorithm>
class LeaseTable {
    using AnyPlan = Plan<Algorithm>;
    using Return = LeaseReturn<Algorithm>;

public:
    struct Entry {
        std::string key;
        AnyPlan plan;
        std::uint64_t hash;
        std::uint64_t number;  // of the lease: no other ever has it
        Micros used_at;
        bool resting;
        Lease lease;
    };

    explicit LeaseTable(const LeasedOptions& options, std::size_t capacity)
        : size_(options.size), idle_(options.idle_return), capacity_(capacity) {
        index_.reserve(capacity_);
    }

    /// The lease of a key under a plan. It has become the one that was used last, and nothing ended is in it.
    [[nodiscard]] Entry& use(const HashedKey& key, const AnyPlan& plan, Micros now) noexcept {
        auto found = index_.find(key);
        if (found != index_.end() && !is_same_plan(found->second->plan, plan)) {
            erase(found, now);
            found = index_.end();
        }
        const Position position = found != index_.end() ? found->second : insert(key, plan, now);
        Entry& entry = *position;
        if (entry.lease.left() > 0 && entry.lease.has_ended(now)) {
            dropped_ += entry.lease.release();
            entry.lease.rest(size_);
        } else if (!entry.resting && is_idle(entry, now)) {
            entry.lease.rest(size_);
        }
        entry.used_at = now;
        if (position != active_.begin()) {
            active_.splice(active_.begin(), entry.resting ? resting_ : active_, position);
            entry.resting = false;
        }
        return entry;
    }

    /// What is known of a key, or null.
    [[nodiscard]] Entry* find(const HashedKey& key) noexcept {
        const auto found = index_.find(key);
        return found != index_.end() ? &*found->second : nullptr;
    }

    /// Gives up what the client has that was used least recently, if that is long enough ago. A client that waits for
    /// an answer is not disturbed.
    void sweep(Micros now) noexcept {
        if (active_.empty() || !is_idle(active_.back(), now) || active_.back().lease.is_waiting()) [[likely]] {
            return;
        }
        Entry& entry = active_.back();
        give_up(entry, now);
        entry.lease.rest(size_);
        entry.resting = true;
        resting_.splice(resting_.begin(), active_, std::prev(active_.end()));
    }

    /// Forgets a key; what it has is lost.
    void drop(const HashedKey& key) noexcept {
        if (const auto found = index_.find(key); found != index_.end()) {
            dropped_ += found->second->lease.release();
            erase(found, 0);
        }
    }

    /// Forgets all.
    void give_up_all(Micros now) noexcept {
        while (!index_.empty()) {
            erase(index_.begin(), now);
        }
    }

    /// What is to be given back, once.
    [[nodiscard]] std::vector<Return> take_returns() noexcept { return std::exchange(returns_, {}); }

    [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

private:
    using List = std::list<Entry>;
    using Position = typename List::iterator;

    struct Hash {
        std::size_t operator()(const HashedKey& key) const noexcept { return static_cast<std::size_t>(key.hash); }
    };
    using Index = std::unordered_map<HashedKey, Position, Hash>;

    [[nodiscard]] bool is_idle(const Entry& entry, Micros now) const noexcept {
        return now >= time_after(entry.used_at, idle_);
    }

    [[nodiscard]] Position insert(const HashedKey& key, const AnyPlan& plan, Micros now) noexcept {
        if (index_.size() >= capacity_) {
            const Entry& oldest = resting_.empty() ? active_.back() : resting_.back();
            erase(index_.find({oldest.key, oldest.hash}), now);
        }
        active_.push_front({.key = std::string(key.key),
                            .plan = plan,
                            .hash = key.hash,
                            .number = ++last_number_,
                            .used_at = now,
                            .resting = false,
                            .lease = Lease(!detail::refills<Algorithm>)});
        index_.emplace(HashedKey{active_.front().key, key.hash}, active_.begin());
        return active_.begin();
    }

    void erase(typename Index::iterator found, Micros now) noexcept {
        const Position position = found->second;
        give_up(*position, now);
        index_.erase(found);
        (position->resting ? resting_ : active_).erase(position);
    }

    void give_up(Entry& entry, Micros now) noexcept {
        const bool refundable = entry.lease.is_refundable(now) && !entry.lease.has_ended(now);
        const std::uint64_t units = entry.lease.release();
        if (units > 0 && refundable) {
            returns_.push_back({entry.key, entry.plan, units});
        } else {
            dropped_ += units;
        }
    }

    const std::uint64_t size_;
    const std::chrono::microseconds idle_;
    const std::size_t capacity_;
    List active_;
    List resting_;
    Index index_;  // its keys stand in the lists
    std::vector<Return> returns_;
    std::uint64_t last_number_ = 0;
    std::uint64_t dropped_ = 0;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_LEASE_TABLE_HPP
