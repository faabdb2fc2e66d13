// SPDX-License-Identifier: MIT
// LeaseDesk: the leases of one limiter, and the calls of the store that nobody waits for.
#ifndef PENSTOCK_GUARD_LEASE_DESK_HPP
#define PENSTOCK_GUARD_LEASE_DESK_HPP

#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/os.hpp>
#include <penstock/detail/threads.hpp>
#include <penstock/guard/door.hpp>
#include <penstock/guard/guard.hpp>
#include <penstock/guard/lease.hpp>
#include <penstock/guard/lease_table.hpp>
#include <penstock/hash.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Holds the leases, and what handlers need that run when the limiter may be gone. No lock is held while the store is
/// called. Thread-safe.
template <class Inner, class Algorithm>
class LeaseDesk : public std::enable_shared_from_this<LeaseDesk<Inner, Algorithm>> {
    using AnyPlan = Plan<Algorithm>;
    using Return = LeaseReturn<Algorithm>;
    using Returns = std::vector<Return>;
    using Table = LeaseTable<Algorithm>;
    using Entry = typename Table::Entry;

public:
    LeaseDesk(const LeasedOptions& options, Inner& inner) : options_(options), inner_(inner) {
        for (std::size_t i = 0; i < shard_count; ++i) {
            shards_.emplace_back(options, options.entries / shard_count);
        }
    }

    [[nodiscard]] bool leases(const AnyPlan& plan) const noexcept { return is_leased(plan, options_); }

    /// Decides a check, or says what to ask the store for.
    [[nodiscard]] bool decide(std::string_view key,
                              const AnyPlan& plan,
                              Micros now,
                              std::uint64_t cost,
                              Decision& decision,
                              LeaseAsk& ask) noexcept {
        const Micros time = clock_.at(now);
        const HashedKey hashed = hash(key);
        Shard& shard = shard_of(hashed);
        LeaseAsk renewal;
        Returns returns;
        bool decided = false;
        bool looks_around = false;
        {
            const Lock lock(shard.lock);
            Entry& entry = shard.table.use(hashed, plan, time);
            decided = entry.lease.decide(cost, time, decision);
            if (!decided) {
                ask = entry.lease.ask(cost, time, options_.size);
                ask.number = entry.number;
            } else if (asynchronous && decision.allowed) {
                renewal = entry.lease.renewal(time, options_.size);
                renewal.number = entry.number;
            }
            shard.served += decided ? 1 : 0;
            shard.now = now;
            looks_around = ++shard.checks % 8 == 0;
            shard.table.sweep(time);
            returns = shard.table.take_returns();
        }
        give_back_all(returns, now);
        if (looks_around) [[unlikely]] {
            look_around(time, now);
        }
        if constexpr (asynchronous) {
            if (renewal.amount > 0) [[unlikely]] {
                LeaseDesk::ask(this->shared_from_this(), key, plan, now, renewal, [](StoreError, const Decision&) {});
            }
        }
        return decided;
    }

    /// Keeps what the store has given beyond a check's cost. The decision becomes the caller's.
    void answered(std::string_view key,
                  const AnyPlan& plan,
                  Micros now,
                  const LeaseAsk& ask,
                  StoreError error,
                  Decision& decision) noexcept {
        // Whoever stands in for the store has no units to hold, and what is not needed would go back to the store.
        const bool is_stores = error == StoreError::none && decision.source == Source::store;
        const bool admitted = is_stores && decision.allowed;
        const std::chrono::microseconds refundable = refundable_for<Algorithm>(plan, decision);
        const HashedKey hashed = hash(key);
        Shard& shard = shard_of(hashed);
        std::uint64_t stray = 0;
        {
            const Lock lock(shard.lock);
            shard.asks += ask.tries;
            shard.taken += admitted ? ask.amount : 0;
            Entry* const entry = shard.table.find(hashed);
            if (entry != nullptr && entry->number == ask.number) {
                is_stores ? settle(entry->lease, ask, decision, refundable) : entry->lease.failed(ask);
            } else if (admitted) {
                stray = ask.surplus();
            }
        }
        if (error != StoreError::none) {
            broken_.store(true, std::memory_order_relaxed);
        }
        if (stray > 0 && refundable.count() > 0) {
            give_back({std::string(key), plan, stray}, now);
        } else {
            lose(stray);
        }
    }

    /// What an answer of the store means where units are held.
    void amend(Op op,
               std::string_view key,
               const AnyPlan& plan,
               Micros now,
               std::uint64_t cost,
               StoreError error,
               Decision& decision) noexcept {
        if (op == Op::check) {
            return;
        }
        const HashedKey hashed = hash(key);
        Shard& shard = shard_of(hashed);
        const Lock lock(shard.lock);
        if (op == Op::reset) {
            shard.table.drop(hashed);
            return;
        }
        Entry* const entry = shard.table.find(hashed);
        if (entry == nullptr) {
            return;
        }
        if (op != Op::peek) {
            entry->lease.forget_refusal();  // it may pass earlier now, or later
        } else if (error == StoreError::none && is_same_plan(entry->plan, plan) &&
                   !entry->lease.has_ended(clock_.at(now))) {
            add(decision, entry->lease);
            if (!decision.allowed && cost <= entry->lease.left()) {
                decision.allowed = true;
                decision.remaining -= cost;
                decision.retry_after = std::chrono::microseconds{0};
            }
        }
    }

    /// Asks without waiting: a caller's check, which the handler hears of, or a renewal.
    template <class Handler>
    static void ask(const std::shared_ptr<LeaseDesk>& desk,
                    std::string_view key,
                    const AnyPlan& plan,
                    Micros now,
                    const LeaseAsk& ask,
                    Handler handler) noexcept {
        desk->under_way_.fetch_add(1, std::memory_order_relaxed);
        const auto question = std::make_shared<Question<Handler>>(
            Question<Handler>{desk, std::string(key), plan, now, ask, std::move(handler)});
        send(question);
        go_on(question);
    }

    /// Gives back all that is held, while time lasts and the store answers. Handlers do not call the store any more
    /// when it returns.
    void close() noexcept {
        const std::chrono::microseconds end = steady_now() + options_.return_timeout;
        broken_.store(false, std::memory_order_relaxed);
        wait_for_at_most(0, end);  // what is under way brings units
        for (Shard& shard : shards_) {
            Returns returns;
            {
                const Lock lock(shard.lock);
                shard.table.give_up_all(clock_.at(shard.now));
                returns = shard.table.take_returns();
            }
            for (const Return& each : returns) {
                wait_for_at_most(most_under_way, end);
                if (is_over(end)) {
                    break;
                }
                give_back(each, shard.now);
            }
        }
        wait_for_at_most(0, end);
        door_.close();
    }

    [[nodiscard]] LeasedStats stats() noexcept {
        LeasedStats sum{.returned = returned_.load(std::memory_order_relaxed),
                        .dropped = lost_.load(std::memory_order_relaxed)};
        for (Shard& shard : shards_) {
            const Lock lock(shard.lock);
            sum.taken += shard.taken;
            sum.dropped += shard.table.dropped();
            sum.served += shard.served;
            sum.leases += shard.table.size();
            sum.asks += shard.asks;
        }
        return sum;
    }

private:
    using Lock = SpinLock<Threads>;

    static constexpr bool asynchronous = Asynchronous<Inner, Algorithm>;
    static constexpr std::size_t shard_count = 64;
    static constexpr std::size_t most_under_way = 256;

    struct alignas(64) Shard {
        Shard(const LeasedOptions& options, std::size_t capacity) : table(options, capacity) {}

        Lock::Flag lock{0};
        std::uint64_t taken = 0;
        std::uint64_t served = 0;
        std::uint64_t asks = 0;
        std::uint64_t checks = 0;
        Micros now = 0;  // of the last check
        Table table;
    };

    template <class Handler>
    struct Question {
        std::shared_ptr<LeaseDesk> desk;
        std::string key;
        AnyPlan plan;
        Micros now;
        LeaseAsk ask;
        Handler handler;
        bool is_half_done = false;
        StoreError error = StoreError::none;
        Decision decision{};
    };

    [[nodiscard]] HashedKey hash(std::string_view key) const noexcept { return {key, hash_bytes(key, seed_)}; }

    [[nodiscard]] Shard& shard_of(const HashedKey& key) noexcept { return shards_[key.hash >> 58]; }

    void settle(Lease& lease, const LeaseAsk& ask, Decision& decision, std::chrono::microseconds refundable) noexcept {
        lease.answered(ask, decision, refundable, options_.size);
        add(decision, lease);
        if (decision.allowed || ask.cost == 0) {
            return;
        }
        if (ask.cost <= lease.left()) {  // which came for another check meanwhile
            static_cast<void>(lease.decide(ask.cost, ask.sent, decision));
        } else if (ask.amount == ask.cost) {
            lease.refused(ask, decision, options_.max_age);
        }
    }

    static void add(Decision& decision, const Lease& lease) noexcept {
        decision.remaining = (std::min)(decision.limit, decision.remaining + lease.left());
    }

    /// It goes on when the answer is there and the caller has come back from the store, which may answer at once: so no
    /// handler runs inside the door.
    template <class Handler>
    static void send(const std::shared_ptr<Question<Handler>>& question) noexcept {
        question->is_half_done = false;
        question->desk->inner_.async_apply(Op::check,
                                           question->key,
                                           question->plan,
                                           question->now,
                                           question->ask.amount,
                                           [question](StoreError error, const Decision& decision) {
                                               question->error = error;
                                               question->decision = decision;
                                               go_on(question);
                                           });
    }

    template <class Handler>
    static void go_on(const std::shared_ptr<Question<Handler>>& question) noexcept {
        if (!std::atomic_ref(question->is_half_done).exchange(true, std::memory_order_acq_rel)) {
            return;
        }
        Question<Handler>& asked = *question;
        LeaseDesk& desk = *asked.desk;
        if (asked.error == StoreError::none && asked.ask.can_shrink(asked.decision) && desk.door_.enter()) {
            static_cast<void>(asked.ask.shrink(asked.decision));
            send(question);
            desk.door_.leave();
            go_on(question);
            return;
        }
        desk.answered(asked.key, asked.plan, asked.now, asked.ask, asked.error, asked.decision);
        desk.under_way_.fetch_sub(1, std::memory_order_release);
        asked.handler(asked.error, asked.decision);
    }

    /// Others' shards may have idle clients, too, and nobody who comes.
    void look_around(Micros time, Micros now) noexcept {
        Shard& shard = shards_[around_.fetch_add(1, std::memory_order_relaxed) % shard_count];
        Returns returns;
        {
            const Lock lock(shard.lock);
            shard.table.sweep(time);
            returns = shard.table.take_returns();
        }
        give_back_all(returns, now);
    }

    void give_back_all(const Returns& returns, Micros now) noexcept {
        for (const Return& each : returns) {
            give_back(each, now);
        }
    }

    void give_back(const Return& units, Micros now) noexcept {
        if (!Refundable<Algorithm> || !door_.enter()) {
            lose(units.units);
            return;
        }
        if constexpr (asynchronous) {
            under_way_.fetch_add(1, std::memory_order_relaxed);
            inner_.async_apply(
                Op::refund,
                units.key,
                units.plan,
                now,
                units.units,
                [desk = this->shared_from_this(), count = units.units](StoreError error, const Decision&) {
                    desk->gave_back(count, error);
                    desk->under_way_.fetch_sub(1, std::memory_order_release);
                });
        } else {
            Decision decision;
            gave_back(units.units, inner_.apply(Op::refund, units.key, units.plan, now, units.units, {}, decision));
        }
        door_.leave();
    }

    void gave_back(std::uint64_t units, StoreError error) noexcept {
        if (error == StoreError::none) {
            returned_.fetch_add(units, std::memory_order_relaxed);
        } else {
            broken_.store(true, std::memory_order_relaxed);
            lose(units);
        }
    }

    void lose(std::uint64_t units) noexcept { lost_.fetch_add(units, std::memory_order_relaxed); }

    [[nodiscard]] bool is_over(std::chrono::microseconds end) const noexcept {
        return broken_.load(std::memory_order_relaxed) || steady_now() >= end;
    }

    /// Until no more calls than that are under way.
    void wait_for_at_most(std::size_t calls, std::chrono::microseconds end) const noexcept {
        while (under_way_.load(std::memory_order_acquire) > calls && !is_over(end)) {
            sleep_for(std::chrono::microseconds{20});
        }
    }

    const LeasedOptions options_;
    const LocalTime clock_{};
    const std::uint64_t seed_ = random_bits();
    Inner& inner_;  // gone when the door is closed
    Door door_;
    std::deque<Shard> shards_;
    std::atomic<std::size_t> around_{0};     // the next shard to be looked at without being asked
    std::atomic<std::size_t> under_way_{0};  // calls that do not wait
    std::atomic<bool> broken_{false};        // the store failed a call
    std::atomic<std::uint64_t> returned_{0};
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_LEASE_DESK_HPP
