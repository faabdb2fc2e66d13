// SPDX-License-Identifier: MIT
// DeniedCache: whom the store has rejected until a time this process rejects by itself until then.
#ifndef PENSTOCK_GUARD_DENIED_CACHE_HPP
#define PENSTOCK_GUARD_DENIED_CACHE_HPP

#include <penstock/algorithm/all_of.hpp>
#include <penstock/check.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/os.hpp>
#include <penstock/detail/pages.hpp>
#include <penstock/detail/slot_table.hpp>
#include <penstock/detail/threads.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/guard/guard.hpp>
#include <penstock/hash.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

/// How many rejections are remembered, and for how long.
struct DeniedCacheOptions {
    /// Clients whose rejection is remembered at once: 1 to 2^30. A table of 64 bytes each at 70% fill, reserved at once
    /// but backed by memory only as it is used.
    std::uint64_t entries = 65'536;

    /// A rejection is remembered for less than this after the store was asked: 1 us to 1 hour. So long may it take
    /// until what another process has given back is seen here.
    std::chrono::microseconds max_age = std::chrono::seconds{1};

    friend constexpr bool operator==(const DeniedCacheOptions&, const DeniedCacheOptions&) noexcept = default;
};

/// What a limiter's cache has answered.
struct DeniedCacheStats {
    std::uint64_t hits = 0;    ///< checks that were rejected here
    std::uint64_t misses = 0;  ///< checks that the storage beneath was asked
};

namespace detail {

template <class Algorithm>
inline constexpr bool has_numbers = requires(const Plan<Algorithm>& plan) {
    Algorithm::Lua::numbers(plan, Micros{});
};

template <class... Parts>
inline constexpr bool has_numbers<AllOf<Parts...>> = (has_numbers<Parts> && ...);

/// Whether plans can be told apart by a hash.
template <class Algorithm>
inline constexpr bool plan_has_hash =
    has_numbers<Algorithm> || std::has_unique_object_representations_v<Plan<Algorithm>>;

/// Equal for equal plans. The words of a plan are multiplied side by side, so that it takes 2 to 3 ns.
template <class Algorithm>
[[nodiscard]] PENSTOCK_INLINE inline std::uint64_t plan_hash(const Plan<Algorithm>& plan) noexcept {
    if constexpr (has_numbers<Algorithm>) {
        constexpr Micros phase = 1;  // of any key: with 0 staggered windows would look like others
        std::uint64_t hash = 0;
        std::uint64_t factor = pi_1;
        for (const std::uint64_t number : Algorithm::Lua::numbers(plan, phase)) {
            hash += fold_multiply(number ^ pi_0, factor);
            factor += pi_2;
        }
        return hash;
    } else {
        return hash_bytes({reinterpret_cast<const char*>(&plan), sizeof plan}, pi_0);
    }
}

/// A count that threads add to without waiting for each other.
class StripedCount {
public:
    void add() noexcept { stripes_[thread_number() % stripes_.size()].count.fetch_add(1, std::memory_order_relaxed); }

    [[nodiscard]] std::uint64_t sum() const noexcept {
        std::uint64_t sum = 0;
        for (const Stripe& stripe : stripes_) {
            sum += stripe.count.load(std::memory_order_relaxed);
        }
        return sum;
    }

private:
    struct alignas(64) Stripe {
        std::atomic<std::uint64_t> count{0};
    };

    [[nodiscard]] static std::size_t thread_number() noexcept {
        static std::atomic<std::size_t> threads{0};
        thread_local const std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
        return number;
    }

    std::array<Stripe, 16> stripes_{};
};

/// A rejection, as times on the clock.
struct DeniedRecord {
    static constexpr Micros no_end = ~Micros{0};

    Micros old;    // when it is too old to be used
    Micros until;  // when the same check may be admitted
    Micros reset;  // when the full limit is back
    std::uint64_t limit;
    std::uint64_t remaining;
    std::uint64_t cost;
    std::uint64_t question;  // a hash of key and plan

    [[nodiscard]] Micros fresh_at() const noexcept { return (std::min)(old, until); }
    [[nodiscard]] Micros paid_off_at() const noexcept { return fresh_at(); }

    [[nodiscard]] static Micros end_of(Micros begin, std::chrono::microseconds wait) noexcept {
        return wait == never ? no_end : begin + static_cast<Micros>(wait.count());
    }

    [[nodiscard]] static std::chrono::microseconds left_of(Micros end, Micros now) noexcept {
        return end == no_end ? never : std::chrono::microseconds{end > now ? end - now : 0};
    }
};

/// The rejections that a limiter remembers, one of a client. No allocation after construction. Thread-safe.
class DeniedTable {
    using Table = SlotTable<DeniedRecord>;
    static constexpr std::uint64_t ways = Threads::ways;
    static constexpr std::uint64_t bytes_per_set = ways * sizeof(Table::Slot);
    static constexpr unsigned stripe_bits = 10;

public:
    /// A check.
    struct Asked {
        Table::Place place;
        std::uint64_t question;
        std::uint64_t cost;
        Micros now;
        std::size_t stripe;
        std::uint64_t generation;  // of the stripe, before the store was asked
    };

    /// Throws std::invalid_argument if an option is out of range.
    explicit DeniedTable(const DeniedCacheOptions& options)
        : max_age_(max_age_of(options)), sets_(sets_for(options)), pages_(sets_ * bytes_per_set),
          table_(reinterpret_cast<Table::Slot*>(pages_.data()), sets_) {}

    [[nodiscard]] PENSTOCK_INLINE Asked ask(std::string_view key,
                                            std::uint64_t plan,
                                            std::uint64_t cost,
                                            Micros now) const noexcept {
        const HashPair hash = hash_pair(key, seed_);
        return {table_.place(hash), hash.first ^ plan, cost, now, stripe_of(hash), 0};
    }

    /// Decides a check that is known to be rejected. Of others it notes what `remember` wants to know.
    [[nodiscard]] PENSTOCK_INLINE bool recall(Asked& asked, Decision& decision) noexcept {
        bool known = false;
        table_.update(asked.place, asked.now, 0, [&](const DeniedRecord& record) {
            // In one comparison: not too old, and not of the future, as it would be if the clock went back.
            const bool young = record.old - asked.now - 1 < max_age_;
            known = young && asked.now < record.until && record.question == asked.question && record.cost == asked.cost;
            if (known) {
                copy_fields(decision,
                            {.allowed = false,
                             .limit = record.limit,
                             .remaining = record.remaining,
                             .retry_after = DeniedRecord::left_of(record.until, asked.now),
                             .reset_after = DeniedRecord::left_of(record.reset, asked.now),
                             .source = Source::denied_cache});
            }
            return false;
        });
        if (known) {
            hits_.add();
        } else {
            asked.generation = stripes_[asked.stripe].generation.load(std::memory_order_acquire);
            misses_.add();
        }
        return known;
    }

    /// Keeps the store's rejection, unless the client was forgotten since it was asked.
    void remember(const Asked& asked, const Decision& decision) noexcept {
        if (decision.allowed || decision.source != Source::store) {
            return;
        }
        const DeniedRecord rejection{.old = asked.now + max_age_,
                                     .until = DeniedRecord::end_of(asked.now, decision.retry_after),
                                     .reset = DeniedRecord::end_of(asked.now, decision.reset_after),
                                     .limit = decision.limit,
                                     .remaining = decision.remaining,
                                     .cost = asked.cost,
                                     .question = asked.question};
        Stripe& stripe = stripes_[asked.stripe];
        const SpinLock<Threads> lock(stripe.lock);
        if (stripe.generation.load(std::memory_order_relaxed) == asked.generation) {
            table_.update(asked.place, asked.now, 0, [&](DeniedRecord& record) {
                record = rejection;
                return true;
            });
        }
    }

    /// Forgets a client. Checks of it that are under way will not be remembered.
    void forget(std::string_view key) noexcept {
        const HashPair hash = hash_pair(key, seed_);
        Stripe& stripe = stripes_[stripe_of(hash)];
        const SpinLock<Threads> lock(stripe.lock);
        stripe.generation.fetch_add(1, std::memory_order_release);
        table_.erase(table_.place(hash));
    }

    [[nodiscard]] DeniedCacheStats stats() const noexcept { return {.hits = hits_.sum(), .misses = misses_.sum()}; }

private:
    /// Clients that are forgotten together, as far as checks under way go.
    struct Stripe {
        SpinLock<Threads>::Flag lock{0};
        std::atomic<std::uint64_t> generation{0};
    };

    [[nodiscard]] static constexpr std::size_t stripe_of(HashPair hash) noexcept {
        return static_cast<std::size_t>(hash.second >> (64 - stripe_bits));
    }

    [[nodiscard]] static Micros max_age_of(const DeniedCacheOptions& options) {
        if (options.max_age.count() < 1 || options.max_age > std::chrono::hours{1}) {
            throw_invalid(
                "DeniedCache.max_age", std::to_string(options.max_age.count()) + " us", "1 us to 3600000000 us");
        }
        return static_cast<Micros>(options.max_age.count());
    }

    [[nodiscard]] static std::uint64_t sets_for(const DeniedCacheOptions& options) {
        if (options.entries < 1 || options.entries > std::uint64_t{1} << 30) {
            throw_invalid("DeniedCache.entries", std::to_string(options.entries), "1 to 1073741824");
        }
        const std::uint64_t slots = (options.entries * 10 + 6) / 7;  // 70% fill
        return (std::max)(std::uint64_t{2}, (slots + ways - 1) / ways);
    }

    const std::uint64_t seed_ = random_bits();
    const Micros max_age_;
    const std::uint64_t sets_;
    Pages pages_;
    Table table_;
    std::array<Stripe, std::size_t{1} << stripe_bits> stripes_{};
    StripedCount hits_;
    StripedCount misses_;
};

static_assert(sizeof(SlotTable<DeniedRecord>::Slot) == 64);

}  // namespace detail

/// Remembers rejections: until the time that the store gave, at most `max_age`, the same check (key, plan and cost) is
/// rejected here, in some tens of nanoseconds and with a retry_after that runs down. Only the store's own rejections
/// are kept. What this process does through this limiter counts at once: refund, charge and reset forget the client,
/// another plan or cost asks the store. What other processes give back counts after at most `max_age`. For algorithms
/// of your own it works if the plan has no padding and no floating point; otherwise every check asks the storage. Each
/// limiter has a cache of its own. No allocation after construction. Thread-safe.
template <class Storage>
class DeniedCache : public detail::Guard<Storage> {
public:
    /// The bounds are checked when a limiter is made of it: std::invalid_argument names the option.
    explicit DeniedCache(const Storage& storage, const DeniedCacheOptions& options = {})
        : storage_(storage), options_(options) {}

    template <class Algorithm>
    class Bound;

private:
    Storage storage_;
    DeniedCacheOptions options_;
};

/// Thread-safe.
template <class Storage>
template <class Algorithm>
class DeniedCache<Storage>::Bound
    : public detail::BoundGuard<DeniedCache<Storage>::Bound<Algorithm>, detail::BoundOf<Storage, Algorithm>> {
    using Inner = detail::BoundOf<Storage, Algorithm>;
    using AnyPlan = Plan<Algorithm>;
    using Asked = detail::DeniedTable::Asked;

public:
    /// Throws std::invalid_argument if an option is out of range.
    explicit Bound(const DeniedCache& cache)
        : table_(std::make_shared<detail::DeniedTable>(cache.options_)), inner_(cache.storage_) {}

    PENSTOCK_INLINE StoreError apply(Op op,
                                     std::string_view key,
                                     const AnyPlan& plan,
                                     Micros now,
                                     std::uint64_t cost,
                                     std::chrono::microseconds max_wait,
                                     Decision& decision) noexcept {
        if constexpr (remembers) {
            if (op == Op::check) {
                Asked asked = ask(key, plan, cost, clock_.at(now));
                return table_->recall(asked, decision) ? StoreError::none
                                                       : check(asked, key, plan, now, cost, decision);
            }
        }
        const StoreError error = inner_.apply(op, key, plan, now, cost, max_wait, decision);
        if (forgets(op)) {
            table_->forget(key);
        }
        return error;
    }

    template <class Failed>
    void apply(std::span<const Check> checks,
               const AnyPlan& plan,
               Micros now,
               std::span<Decision> decisions,
               Failed failed) noexcept {
        std::array<Asked, detail::longest_run> asked;
        const Micros time = clock_.at(now);
        const auto here = [&](std::size_t i) {
            if constexpr (remembers) {
                asked[i % asked.size()] = ask(checks[i].key, plan, checks[i].cost, time);
                return table_->recall(asked[i % asked.size()], decisions[i]);
            }
            return false;
        };
        const auto there = [&](std::size_t i, StoreError error) {
            if (error != StoreError::none) {
                failed(i, error);
            } else if (remembers) {
                table_->remember(asked[i % asked.size()], decisions[i]);
            }
        };
        detail::apply_in_runs(inner_, checks, plan, now, decisions, here, there);
    }

    /// The handler is called here if the cache decides.
    template <class Handler>
    void async_apply(Op op,
                     std::string_view key,
                     const AnyPlan& plan,
                     Micros now,
                     std::uint64_t cost,
                     Handler handler) noexcept requires detail::Asynchronous<Inner, Algorithm> {
        if constexpr (remembers) {
            if (op == Op::check) {
                async_check(key, plan, now, cost, std::move(handler));
                return;
            }
        }
        inner_.async_apply(op,
                           key,
                           plan,
                           now,
                           cost,
                           [table = table_, op, own_key = std::string(key), handler = std::move(handler)](
                               StoreError error, const Decision& decision) mutable {
                               if (forgets(op)) {
                                   table->forget(own_key);
                               }
                               handler(error, decision);
                           });
    }

    /// The storage beneath, with its own counters.
    [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

    [[nodiscard]] DeniedCacheStats stats() const noexcept { return table_->stats(); }

private:
    static constexpr bool remembers = detail::plan_has_hash<Algorithm>;

    [[nodiscard]] static constexpr bool forgets(Op op) noexcept {
        return op == Op::refund || op == Op::charge || op == Op::reset;
    }

    [[nodiscard]] Asked ask(std::string_view key, const AnyPlan& plan, std::uint64_t cost, Micros time) const noexcept {
        return table_->ask(key, detail::plan_hash<Algorithm>(plan), cost, time);
    }

    PENSTOCK_NOINLINE StoreError check(const Asked& asked,
                                       std::string_view key,
                                       const AnyPlan& plan,
                                       Micros now,
                                       std::uint64_t cost,
                                       Decision& decision) noexcept {
        const StoreError error = inner_.apply(Op::check, key, plan, now, cost, {}, decision);
        if (error == StoreError::none) {
            table_->remember(asked, decision);
        }
        return error;
    }

    template <class Handler>
    void async_check(
        std::string_view key, const AnyPlan& plan, Micros now, std::uint64_t cost, Handler handler) noexcept {
        Asked asked = ask(key, plan, cost, clock_.at(now));
        if (Decision decision; table_->recall(asked, decision)) {
            handler(StoreError::none, decision);
            return;
        }
        inner_.async_apply(
            Op::check,
            key,
            plan,
            now,
            cost,
            [table = table_, asked, handler = std::move(handler)](StoreError error, const Decision& decision) mutable {
                if (error == StoreError::none) {
                    table->remember(asked, decision);
                }
                handler(error, decision);
            });
    }

    std::shared_ptr<detail::DeniedTable> table_;
    [[no_unique_address]] detail::LocalTime clock_;
    Inner inner_;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_DENIED_CACHE_HPP
