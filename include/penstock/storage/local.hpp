// SPDX-License-Identifier: MIT
// LocalStorage: clients' states in the memory of this process.
#ifndef PENSTOCK_STORAGE_LOCAL_HPP
#define PENSTOCK_STORAGE_LOCAL_HPP

#include <penstock/check.hpp>
#include <penstock/clock.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/os.hpp>
#include <penstock/detail/pages.hpp>
#include <penstock/detail/slot_table.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/hash.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// An algorithm's state in a slot: with the time when it is fresh beside it where the state itself does not tell.
template <class Algorithm>
struct LocalRecord {
    typename Algorithm::State state;
    Micros fresh;

    [[nodiscard]] Micros fresh_at() const noexcept { return fresh; }
    [[nodiscard]] Micros paid_off_at() const noexcept { return fresh; }
    void expect_fresh(Micros at) noexcept { fresh = (std::max)(fresh, at); }
};

template <Expiring Algorithm>
struct LocalRecord<Algorithm> {
    typename Algorithm::State state;

    [[nodiscard]] Micros fresh_at() const noexcept { return Algorithm::fresh_at(state); }
    [[nodiscard]] Micros paid_off_at() const noexcept { return detail::paid_off_at<Algorithm>(state); }
    void expect_fresh(Micros) noexcept {}
};

}  // namespace detail

/// Keeps clients' states in a table of fixed size in this process. After construction it allocates nothing and starts
/// no thread: inventing keys cannot exhaust memory. A state that is as good as fresh makes room for another; if there
/// is no such, the one with the smallest share of its limit in use does, which `evictions()` counts.
class LocalStorage {
public:
    struct Options {
        /// Clients that are remembered at once: 1 to 2^36. A table of 32 bytes per client (64 for AllOf of two) at 70%
        /// fill, reserved at once but backed by memory only as it is used.
        std::uint64_t max_keys = 1'000'000;

        /// The size of the table in bytes, instead of max_keys: at least 16 slots. 0: max_keys decides.
        std::uint64_t max_bytes = 0;

        /// Has the system back the whole table with memory at construction, which then takes 0.1 to 1 s per GiB, so
        /// that no check is the first to touch a page: that can take milliseconds. false: memory is backed as it is
        /// used.
        bool prefault = false;

        /// The seed of the hash that places the keys. 0: random, so that nobody can aim keys at one place. Fix it only
        /// in tests.
        std::uint64_t seed = 0;
    };

    using DefaultClock = SteadyClock;

    template <class Algorithm>
    class Bound;

    LocalStorage() : LocalStorage(Options{}) {}

    /// The bounds are checked when a limiter is made of it: std::invalid_argument names the option, std::bad_alloc
    /// means that the system refuses that much memory.
    explicit LocalStorage(const Options& options) : options_(options) {}

private:
    Options options_;
};

/// The table of one limiter. Thread-safe.
template <class Algorithm>
class LocalStorage::Bound {
    using State = typename Algorithm::State;
    using Record = detail::LocalRecord<Algorithm>;
    using Table = detail::SlotTable<Record>;
    using Slot = typename Table::Slot;

public:
    /// A key, looked up in advance.
    struct Location {
        typename Table::Place place;
        std::string_view key;
    };

    explicit Bound(const LocalStorage& storage)
        : seed_(storage.options_.seed != 0 ? storage.options_.seed : detail::random_bits()),
          sets_(sets_for(storage.options_)), pages_(sets_ * bytes_per_set, storage.options_.prefault),
          table_(reinterpret_cast<Slot*>(pages_.data()), sets_) {}

    /// Hashes the key and asks for the memory in which it stands. The key must live as long as the location is used.
    [[nodiscard]] PENSTOCK_INLINE Location locate(std::string_view key) const noexcept {
        const Location location{table_.place(detail::hash_pair(key, seed_)), key};
        table_.prefetch(location.place);
        return location;
    }

    /// O(1): two sets of eight slots are looked at, at most. Never fails.
    PENSTOCK_INLINE StoreError apply(Op op,
                                     const Location& location,
                                     const Plan<Algorithm>& plan,
                                     Micros now,
                                     std::uint64_t cost,
                                     std::chrono::microseconds max_wait,
                                     Decision& decision) noexcept {
        if (op == Op::reset) {
            table_.erase(location.place);
            return StoreError::none;
        }
        table_.update(
            location.place, now, detail::payoff(plan), [&](Record & record) __attribute__((always_inline)) {
                return step(record, op, location.key, plan, now, cost, max_wait, decision);
            });
        return StoreError::none;
    }

    StoreError apply(Op op,
                     std::string_view key,
                     const Plan<Algorithm>& plan,
                     Micros now,
                     std::uint64_t cost,
                     std::chrono::microseconds max_wait,
                     Decision& decision) noexcept {
        return apply(op, locate(key), plan, now, cost, max_wait, decision);
    }

    /// How many checks `apply_all` takes.
    static constexpr std::size_t most_at_once = Table::most_entries;

    /// Decides several checks in one atomic step: all of them take, or none. Each decision is that of its own check
    /// after those before it. True if all are allowed. Takes up to `most_at_once` checks, and as many decisions; more
    /// are not decided: false, and nothing is taken.
    bool apply_all(std::span<const PlannedCheck<Algorithm>> checks,
                   Micros now,
                   std::span<Decision> decisions) noexcept {
        if (checks.size() > most_at_once || checks.size() > decisions.size()) {
            return false;
        }
        std::array<typename Table::Entry, most_at_once> entries;
        for (std::size_t i = 0; i < checks.size(); ++i) {
            entries[i].place = locate(checks[i].key).place;
        }
        bool allowed = false;
        table_.update_all(std::span(entries).first(checks.size()), now, [&] {
            allowed = true;
            bool changed = false;
            for (std::size_t i = 0; i < checks.size(); ++i) {
                typename Table::Entry& owner = entries[i].same != nullptr ? *entries[i].same : entries[i];
                owner.changed |= step(
                    owner.record, Op::check, checks[i].key, *checks[i].plan, now, checks[i].cost, {}, decisions[i]);
                allowed = allowed && decisions[i].allowed;
                owner.payoff = (std::max)(owner.payoff, detail::payoff(*checks[i].plan));
                changed = changed || owner.changed;
            }
            return allowed && changed;
        });
        return allowed;
    }

    /// How many clients were forgotten before their time because there was no room.
    [[nodiscard]] std::uint64_t evictions() const noexcept { return table_.evictions(); }

    /// How many states there is room for.
    [[nodiscard]] std::uint64_t slots() const noexcept { return sets_ * ways; }

    /// The size of the table.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return sets_ * bytes_per_set; }

private:
    static constexpr std::uint64_t ways = detail::Threads::ways;
    static constexpr std::uint64_t bytes_per_set = ways * sizeof(Slot);
    static constexpr std::uint64_t most_keys = std::uint64_t{1} << 36;

    [[nodiscard]] static std::uint64_t sets_for(const Options& options) {
        constexpr std::uint64_t least = 2;
        if (options.max_bytes != 0) {
            constexpr std::uint64_t most_bytes = most_keys * sizeof(Slot);
            if (options.max_bytes < least * bytes_per_set || options.max_bytes > most_bytes) {
                detail::throw_invalid("LocalStorage.max_bytes",
                                      std::to_string(options.max_bytes),
                                      "0, or " + std::to_string(least * bytes_per_set) + " to " +
                                          std::to_string(most_bytes));
            }
            return options.max_bytes / bytes_per_set;
        }
        if (options.max_keys < 1 || options.max_keys > most_keys) {
            detail::throw_invalid("LocalStorage.max_keys", std::to_string(options.max_keys), "1 to 68719476736");
        }
        const std::uint64_t slots = (options.max_keys * 10 + 6) / 7;  // 70% fill
        return (std::max)(least, (slots + ways - 1) / ways);
    }

    /// Runs the algorithm on a record; true if it is to be kept. It is pure, as the table demands: the key's record and
    /// the decision are all it writes. Inlined, so that the operation is known and the decision never travels through
    /// memory.
    PENSTOCK_INLINE static bool step(Record& record,
                                     Op op,
                                     std::string_view key,
                                     const Plan<Algorithm>& plan,
                                     Micros now,
                                     std::uint64_t cost,
                                     std::chrono::microseconds max_wait,
                                     Decision& decision) noexcept {
        const Micros phase = detail::is_staggered(plan) ? stagger_hash(key) : 0;
        const State before = record.state;
        const Decision made = decide(op, record.state, plan, now, cost, phase, max_wait);
        record.expect_fresh(now + static_cast<Micros>(made.reset_after.count()));
        detail::copy_fields(decision, made);
        return changes(op, made, cost, before, record.state);
    }

    PENSTOCK_INLINE static Decision decide(Op op,
                                           State& state,
                                           const Plan<Algorithm>& plan,
                                           Micros now,
                                           std::uint64_t cost,
                                           Micros phase,
                                           std::chrono::microseconds max_wait) noexcept {
        if constexpr (Refundable<Algorithm>) {
            if (op == Op::refund) {
                return Algorithm::refund(state, plan, now, cost, phase);
            }
        }
        if constexpr (Chargeable<Algorithm>) {
            if (op == Op::charge) {
                return Algorithm::charge(state, plan, now, cost, phase);
            }
        }
        if constexpr (Reservable<Algorithm>) {
            if (op == Op::reserve) {
                Reservation reservation = Algorithm::reserve(state, plan, now, cost, phase, max_wait);
                if (reservation.decision.allowed) {
                    reservation.decision.retry_after = reservation.wait;
                }
                return reservation.decision;
            }
        }
        return Algorithm::step(state, plan, now, cost, phase);
    }

    /// Whether the state must be kept: a check that was admitted, or a refund or charge that found something to do.
    [[nodiscard]] static bool changes(
        Op op, const Decision& decision, std::uint64_t cost, const State& before, const State& after) noexcept {
        if (op == Op::peek || cost == 0) {
            return false;
        }
        if (op == Op::refund || op == Op::charge) {
            return std::memcmp(&before, &after, sizeof before) != 0;
        }
        return decision.allowed;
    }

    std::uint64_t seed_;
    std::uint64_t sets_;
    detail::Pages pages_;
    Table table_;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_STORAGE_LOCAL_HPP
