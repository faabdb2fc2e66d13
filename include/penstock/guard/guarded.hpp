// SPDX-License-Identifier: MIT
// Guarded: a storage that may fail, behind a circuit breaker for each node and a policy for when it does.
#ifndef PENSTOCK_GUARD_GUARDED_HPP
#define PENSTOCK_GUARD_GUARDED_HPP

#include <penstock/check.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/os.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/guard/breaker.hpp>
#include <penstock/guard/circuit.hpp>
#include <penstock/guard/guard.hpp>
#include <penstock/guard/plan_shares.hpp>
#include <penstock/plan.hpp>
#include <penstock/storage/local.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

PENSTOCK_BEGIN_NAMESPACE

/// On a failure of the store this process counts by itself, with an equal share of each limit: a gateways-th, rounded
/// up, so never less than one unit. While the store is away, gateways together admit at most gateways - 1 units more
/// than the limit, on top of what the store had admitted. What was counted here stays counted, so that a store that
/// comes and goes hands out no second burst.
struct Local {
    std::uint64_t gateways = 1;          ///< processes that share the limits: 1 to 1,000,000
    std::uint64_t max_keys = 1'000'000;  ///< clients that are remembered: see LocalStorage
    bool prefault = true;                ///< false: memory is backed when the store is away, which takes milliseconds

    friend constexpr bool operator==(const Local&, const Local&) noexcept = default;
};

/// When a store is not asked, and who decides then.
struct GuardedOptions {
    /// What a failure of the store means: Allow, Deny or Local.
    std::variant<Allow, Deny, Local> on_failure = Allow{};

    BreakerOptions breaker{};
};

/// What the breakers of all nodes have seen, and what was decided without the store.
struct GuardedStats {
    std::uint64_t open = 0;      ///< breakers that are open now; that of a node that has lost its slots stays so
    std::uint64_t openings = 0;  ///< how often one opened
    std::uint64_t probes = 0;    ///< calls that asked a store whether it is well again
    std::uint64_t refused = 0;   ///< calls that were not sent because a breaker was open
    std::uint64_t failed = 0;    ///< calls that the store failed to answer
};

namespace detail {

/// Stands in for a store, with a share of each limit. Nothing can for an algorithm that cannot be divided.
template <class Algorithm>
class Fallback {};

template <Shareable Algorithm>
class Fallback<Algorithm> {
public:
    explicit Fallback(const Local& local)
        : table_(LocalStorage{{.max_keys = local.max_keys, .prefault = local.prefault}}) {}

    PENSTOCK_INLINE void decide(Op op,
                                std::string_view key,
                                const Plan<Algorithm>& plan,
                                Micros now,
                                std::uint64_t cost,
                                std::chrono::microseconds max_wait,
                                std::uint64_t gateways,
                                Decision& decision) noexcept {
        const Plan<Algorithm>& share = share_of_plan<Algorithm>(plan, gateways - 1, gateways);
        static_cast<void>(table_.apply(op, table_.locate(key), share, now, cost, max_wait, decision));
        decision.source = Source::fallback;
    }

private:
    LocalStorage::Bound<Algorithm> table_;
};

}  // namespace detail

/// Asks the storage, unless the breaker of the node that has the key is open; decides by `on_failure` whatever the
/// store does not. In a cluster or a ring only the keys of the node that failed lose the common count. With an open
/// breaker a check costs less than a microsecond, but for one probe in an interval, which waits for its answer. Copies
/// share breakers and the number of gateways; each limiter has a local table of its own. Thread-safe.
template <class Storage>
class Guarded : public detail::Guard<Storage> {
public:
    /// Throws std::invalid_argument if an option is out of range.
    explicit Guarded(const Storage& storage, const GuardedOptions& options = {})
        : storage_(storage), shared_(std::make_shared<Shared>(options)) {}

    /// From now on, of so many gateways: 1 to 1,000,000, or it throws std::invalid_argument. Means something with
    /// Local only. What this process has counted stays counted.
    void set_gateways(std::uint64_t gateways) { shared_->set_gateways(gateways); }

    [[nodiscard]] GuardedStats stats() const noexcept { return shared_->stats(); }

    template <class Algorithm>
    class Bound;

private:
    struct Shared;

    Storage storage_;
    std::shared_ptr<Shared> shared_;
};

template <class Storage>
struct Guarded<Storage>::Shared {
    explicit Shared(const GuardedOptions& options) : on_failure(options.on_failure), slow(options.breaker.slow) {
        for (std::size_t i = 0; i < circuit_count; ++i) {
            circuits.emplace_back(options.breaker);
        }
        if (const Local* local = std::get_if<Local>(&options.on_failure)) {
            set_gateways(local->gateways);
        }
    }

    /// A node's; of more nodes than there are circuits, some share one.
    [[nodiscard]] Circuit& circuit(std::size_t node) noexcept { return circuits[node % circuit_count]; }

    void set_gateways(std::uint64_t number) {
        if (number < 1 || number > 1'000'000) {
            detail::throw_invalid("Local.gateways", std::to_string(number), "1 to 1000000");
        }
        gateways.store(number, std::memory_order_relaxed);
    }

    [[nodiscard]] GuardedStats stats() const noexcept {
        GuardedStats sum{.failed = failed.load(std::memory_order_relaxed)};
        for (const Circuit& each : circuits) {
            const CircuitStats stats = each.stats();
            sum.open += stats.open ? 1 : 0;
            sum.openings += stats.openings;
            sum.probes += stats.probes;
            sum.refused += stats.refused;
        }
        return sum;
    }

    static constexpr std::size_t circuit_count = 64;

    const std::variant<Allow, Deny, Local> on_failure;
    const std::chrono::microseconds slow;
    const detail::LocalTime clock{};
    std::atomic<std::uint64_t> gateways{1};
    std::atomic<std::uint64_t> failed{0};
    std::deque<Circuit> circuits;
};

/// Thread-safe.
template <class Storage>
template <class Algorithm>
class Guarded<Storage>::Bound
    : public detail::BoundGuard<Guarded<Storage>::Bound<Algorithm>, detail::BoundOf<Storage, Algorithm>> {
    using Inner = detail::BoundOf<Storage, Algorithm>;
    using AnyPlan = Plan<Algorithm>;

    /// Where the storage beneath keeps a key.
    template <class Place>
    struct Location {
        Place place;
        std::string_view key;
    };

public:
    /// Throws std::invalid_argument if the size of the local table is out of range.
    explicit Bound(const Guarded& guarded)
        : judge_(std::make_shared<Judge>(guarded.shared_)), inner_(guarded.storage_) {}

    StoreError apply(Op op,
                     std::string_view key,
                     const AnyPlan& plan,
                     Micros now,
                     std::uint64_t cost,
                     std::chrono::microseconds max_wait,
                     Decision& decision) noexcept {
        return apply_at(key, op, key, plan, now, cost, max_wait, decision);
    }

    [[nodiscard]] PENSTOCK_INLINE auto locate(std::string_view key) const noexcept requires detail::Locating<Inner> {
        return Location<decltype(inner_.locate(key))>{inner_.locate(key), key};
    }

    template <class Place>
    PENSTOCK_INLINE StoreError apply(Op op,
                                     const Location<Place>& location,
                                     const AnyPlan& plan,
                                     Micros now,
                                     std::uint64_t cost,
                                     std::chrono::microseconds max_wait,
                                     Decision& decision) noexcept {
        return apply_at(location.place, op, location.key, plan, now, cost, max_wait, decision);
    }

    template <class Failed>
    void apply(std::span<const Check> checks,
               const AnyPlan& plan,
               Micros now,
               std::span<Decision> decisions,
               Failed failed) noexcept {
        std::array<Attempt, detail::longest_run> attempts;
        const auto fail = [&](std::size_t i, StoreError error) {
            const Micros time = attempts[i % attempts.size()].time;
            const Asked asked{Op::check, checks[i].key, plan, time, checks[i].cost, {}};
            if (judge_->stand_in(error, asked, decisions[i]) != StoreError::none) {
                failed(i, error);
            }
        };
        const auto here = [&](std::size_t i) {
            Attempt& attempt = attempts[i % attempts.size()];
            attempt = begin(checks[i].key, now);
            if (attempt.pass == Pass::refused) {
                fail(i, StoreError::breaker_open);
            }
            return attempt.pass == Pass::refused;
        };
        const auto there = [&](std::size_t i, StoreError error) {
            judge_->ended(attempts[i % attempts.size()], error, decisions[i].source, now);
            if (error != StoreError::none) {
                fail(i, error);
            }
        };
        detail::apply_in_runs(inner_, checks, plan, now, decisions, here, there);
    }

    /// The handler is called here if the breaker is open.
    template <class Handler>
    void async_apply(Op op,
                     std::string_view key,
                     const AnyPlan& plan,
                     Micros now,
                     std::uint64_t cost,
                     Handler handler) noexcept requires detail::Asynchronous<Inner, Algorithm> {
        const Attempt attempt = begin(key, now);
        if (attempt.pass == Pass::refused) {
            Judge::tell(*judge_, StoreError::breaker_open, {op, key, plan, attempt.time, cost, {}}, {}, handler);
            return;
        }
        inner_.async_apply(
            op,
            key,
            plan,
            now,
            cost,
            [judge = judge_, attempt, op, own_key = std::string(key), plan, now, cost, handler = std::move(handler)](
                StoreError error, const Decision& decision) mutable {
                judge->ended(attempt, error, decision.source, now);
                Judge::tell(*judge, error, {op, own_key, plan, attempt.time, cost, {}}, decision, handler);
            });
    }

    [[nodiscard]] Decision failed(StoreError) const noexcept { return judge_->meaning(); }

    /// The storage beneath, with its own counters.
    [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

    [[nodiscard]] GuardedStats stats() const noexcept { return judge_->shared->stats(); }

private:
    struct Asked {
        Op op;
        std::string_view key;
        const AnyPlan& plan;
        Micros time;  // that guards go by
        std::uint64_t cost;
        std::chrono::microseconds max_wait;
    };

    /// A call that the breaker was asked for.
    struct Attempt {
        Circuit* circuit = nullptr;
        Pass pass = Pass::refused;
        Micros time = 0;         // when it was asked, by the time that guards go by
        std::int64_t began = 0;  // steady time; where nothing is asked over a network nothing is slow
    };

    class Judge;

    [[nodiscard]] PENSTOCK_INLINE Attempt begin(std::string_view key, Micros now) const noexcept {
        Shared& shared = *judge_->shared;
        Attempt attempt{.circuit = &shared.circuit(this->node_of(key, now)), .time = shared.clock.at(now)};
        attempt.pass = attempt.circuit->ask(attempt.time);
        if (Guarded::is_shared && attempt.pass != Pass::refused) {
            attempt.began = detail::steady_now().count();
        }
        return attempt;
    }

    // Inlined, so that the operation is known where a check is nanoseconds.
    template <class Place>
    PENSTOCK_INLINE StoreError apply_at(const Place& place,
                                        Op op,
                                        std::string_view key,
                                        const AnyPlan& plan,
                                        Micros now,
                                        std::uint64_t cost,
                                        std::chrono::microseconds max_wait,
                                        Decision& decision) noexcept {
        const Attempt attempt = begin(key, now);
        StoreError error = StoreError::breaker_open;
        if (attempt.pass != Pass::refused) {
            error = inner_.apply(op, place, plan, now, cost, max_wait, decision);
            judge_->ended(attempt, error, decision.source, now);
        }
        if (error == StoreError::none && op != Op::reset) [[likely]] {
            return StoreError::none;
        }
        return judge_->stand_in(error, {op, key, plan, attempt.time, cost, max_wait}, decision);
    }

    std::shared_ptr<Judge> judge_;
    Inner inner_;
};

/// What a call needs when it is over, even if its limiter is gone by then. Thread-safe.
template <class Storage>
template <class Algorithm>
class Guarded<Storage>::Bound<Algorithm>::Judge {
public:
    explicit Judge(std::shared_ptr<Shared> all) : shared(std::move(all)) {
        if (const Local* local = std::get_if<Local>(&shared->on_failure)) {
            if constexpr (Shareable<Algorithm>) {
                fallback_.emplace(*local);
            } else {
                detail::throw_invalid(
                    "Guarded.on_failure", "Local", "Allow or Deny for an algorithm that has no `share`");
            }
        }
    }

    /// `source` says who decided: guards beneath may do so without the store.
    PENSTOCK_INLINE void ended(const Attempt& attempt, StoreError error, Source source, Micros now) noexcept {
        using detail::Health;
        Health health =
            error == StoreError::none && source != Source::store ? Health::unknown : detail::health_of(error);
        if constexpr (Guarded::is_shared) {
            const bool slow = detail::steady_now().count() - attempt.began > shared->slow.count();
            health = health == Health::well && slow ? Health::unwell : health;
        }
        attempt.circuit->answered(attempt.pass, health, shared->clock.at(now));
        if (error != StoreError::none) {
            shared->failed.fetch_add(1, std::memory_order_relaxed);
        }
    }

    /// Decides where the store does not, if somebody can: then none. What is reset there is reset here, too.
    PENSTOCK_INLINE StoreError stand_in(StoreError error, const Asked& asked, Decision& decision) noexcept {
        if constexpr (Shareable<Algorithm>) {
            if (fallback_.has_value()) {
                Decision unasked;
                fallback_->decide(asked.op,
                                  asked.key,
                                  asked.plan,
                                  asked.time,
                                  asked.cost,
                                  asked.max_wait,
                                  shared->gateways.load(std::memory_order_relaxed),
                                  error != StoreError::none ? decision : unasked);
                return StoreError::none;
            }
        }
        return error;
    }

    /// Tells a handler of the decision, or of what stands in for it.
    template <class Handler>
    static void tell(Judge& judge, StoreError error, const Asked& asked, Decision decision, Handler& handler) noexcept {
        if (error != StoreError::none || asked.op == Op::reset) {
            error = judge.stand_in(error, asked, decision);
        }
        handler(error, error == StoreError::none ? decision : judge.meaning());
    }

    /// Of a failure for which nobody stands in.
    [[nodiscard]] Decision meaning() const noexcept {
        return std::holds_alternative<Deny>(shared->on_failure) ? detail::meaning_of(Deny{})
                                                                : detail::meaning_of(Allow{});
    }

    const std::shared_ptr<Shared> shared;

private:
    std::optional<detail::Fallback<Algorithm>> fallback_;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_GUARDED_HPP
