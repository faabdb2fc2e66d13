// SPDX-License-Identifier: MIT
// Limiter: an algorithm, a storage and a clock, joined.
#ifndef PENSTOCK_LIMITER_HPP
#define PENSTOCK_LIMITER_HPP

#include <penstock/check.hpp>
#include <penstock/clock.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/awaitable.hpp>
#include <penstock/detail/os.hpp>
#include <penstock/detail/plan_cell.hpp>
#include <penstock/plan.hpp>
#include <penstock/storage/local.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

/// Decides whether a request may pass.
///
///     penstock::Limiter limiter{penstock::TokenBucket{.capacity = 20, .refill = penstock::per_second(10)}};
///     if (penstock::Decision d = limiter.check("user:42"); !d) reply_429(d.retry_after);
///
/// A key is any bytes, of any length; each key is a client of its own. Every call that decides takes another plan
/// instead of the limiter's own, so that clients of different tiers share one limiter: what a client has used stays
/// used under any plan. All members may be called from any thread at any time; all but the constructor and `configure`
/// are noexcept. What they cost is up to the storage; in-process it is nanoseconds, without allocation.
template <class Algorithm, class Storage = LocalStorage, class Clock = detail::DefaultClock<Storage>>
class Limiter {
    static_assert(detail::explain_algorithm<Algorithm>());
    static_assert(detail::explain_storage<Storage, Algorithm>());
    static_assert(detail::explain_clock<Clock>());
    static_assert(detail::explain_time<Storage, Clock>());

    using Bound = typename Storage::template Bound<Algorithm>;

public:
    using PlanType = Plan<Algorithm>;

    /// Throws std::invalid_argument if a parameter or option is out of range.
    explicit Limiter(const Algorithm& algorithm, const Storage& storage = Storage(), const Clock& clock = Clock())
        : plan_(PlanType(algorithm)), storage_(storage), clock_(clock) {}

    Limiter(const Limiter&) = delete;
    Limiter& operator=(const Limiter&) = delete;

    /// Takes `cost` units of the key's limit, or nothing. Cost 0 is always allowed; a cost above the limit never is.
    Decision check(std::string_view key, std::uint64_t cost = 1) noexcept {
        return check(key, plan_.load().plan(), cost);
    }
    Decision check(std::string_view key, const PlanType& plan, std::uint64_t cost = 1) noexcept {
        return apply(Op::check, key, plan, cost);
    }

    /// Decides a batch in order, at one reading of the clock, so that entries of one key see each other; the memory's
    /// or the network's latencies overlap. Fills as many decisions as the shorter span holds.
    void check(std::span<const Check> checks, std::span<Decision> decisions) noexcept {
        check(plan_.load().plan(), checks, decisions);
    }
    void check(const PlanType& plan, std::span<const Check> checks, std::span<Decision> decisions) noexcept;

    /// A check with a priority, by which a storage that sheds load goes; others take no notice.
    Decision check(const Check& one) noexcept { return check(one, plan_.load().plan()); }
    Decision check(const Check& one, const PlanType& plan) noexcept {
        if constexpr (detail::Shedding<Bound>) {
            Decision decision;
            check(plan, {&one, 1}, {&decision, 1});
            return decision;
        } else {
            return apply(Op::check, one.key, plan, one.cost);
        }
    }

    /// Asks without waiting: `handler(Decision)` is called exactly once, on the thread of the storage, or here and at
    /// once if a guard decides without asking; it must not throw nor keep that thread for long: every other answer
    /// waits meanwhile. The key is copied. When limiter and storage are destroyed, the handlers of what is still asked
    /// get what a failure means; those who then ask again without end keep it from ending. For storages that can, such
    /// as RedisStorage.
    template <class Handler>
    void async_check(std::string_view key, std::uint64_t cost, Handler handler) noexcept {
        async_check(key, plan_.load().plan(), cost, std::move(handler));
    }
    template <class Handler>
    void async_check(std::string_view key, const PlanType& plan, std::uint64_t cost, Handler handler) noexcept {
        static_assert(asynchronous, "penstock: async_check needs a storage that is asked over a network");
        storage_.async_apply(
            Op::check,
            key,
            plan,
            now(),
            cost,
            [handler = std::move(handler)](StoreError, const Decision& decision) mutable { handler(decision); });
    }

    /// A check with a priority; if it is shed the handler is called here and at once.
    template <class Handler>
    void async_check(const Check& one, Handler handler) noexcept {
        async_check(one, plan_.load().plan(), std::move(handler));
    }
    template <class Handler>
    void async_check(const Check& one, const PlanType& plan, Handler handler) noexcept {
        if constexpr (detail::Shedding<Bound>) {
            if (const std::optional<Decision> decision = storage_.shed(one.priority)) {
                handler(*decision);
                return;
            }
        }
        async_check(one.key, plan, one.cost, std::move(handler));
    }

    /// `co_await limiter.async_check(key)` gives the Decision; the coroutine goes on on the thread of the storage. Key
    /// and limiter must live until then. A coroutine that is suspended here may be destroyed on that thread only, or
    /// while it does nothing for this limiter.
    [[nodiscard]] auto async_check(std::string_view key, std::uint64_t cost = 1) noexcept {
        return async_check(key, plan_.load().plan(), cost);
    }
    [[nodiscard]] auto async_check(std::string_view key, const PlanType& plan, std::uint64_t cost = 1) noexcept {
        static_assert(asynchronous, "penstock: async_check needs a storage that is asked over a network");
        if constexpr (requires { storage_.awaitable(Op::check, key, plan, Micros{}, cost); }) {
            return storage_.awaitable(Op::check, key, plan, now(), cost);
        } else {
            return detail::Awaitable<Bound, Algorithm>(storage_, Op::check, key, plan, now(), cost);
        }
    }

    /// What `check` would answer, taking nothing.
    Decision peek(std::string_view key, std::uint64_t cost = 1) noexcept {
        return peek(key, plan_.load().plan(), cost);
    }
    Decision peek(std::string_view key, const PlanType& plan, std::uint64_t cost = 1) noexcept {
        return apply(Op::peek, key, plan, cost);
    }

    /// Gives `cost` units back, never above the full limit; in a window only to the current one. Returns what a check
    /// of cost 0 would now.
    Decision refund(std::string_view key, std::uint64_t cost) noexcept {
        return refund(key, plan_.load().plan(), cost);
    }
    Decision refund(std::string_view key, const PlanType& plan, std::uint64_t cost) noexcept {
        static_assert(Refundable<Algorithm>, "penstock: refund needs an algorithm that has a `refund`");
        return apply(Op::refund, key, plan, cost);
    }

    /// Takes `cost` units even past the limit, as a penalty after the fact; the debt is bounded by one full limit.
    /// Returns what a check of cost 0 would now, allowed only while the client is within its limit.
    Decision charge(std::string_view key, std::uint64_t cost) noexcept {
        return charge(key, plan_.load().plan(), cost);
    }
    Decision charge(std::string_view key, const PlanType& plan, std::uint64_t cost) noexcept {
        static_assert(Chargeable<Algorithm>, "penstock: charge needs an algorithm that has a `charge`");
        return apply(Op::charge, key, plan, cost);
    }

    /// Throttles: takes `cost` units now, from the future if need be, when they are due within `max_wait` and the debt
    /// stays within one full limit, and says how long to hold the request. Waiters get their turn in the order of their
    /// calls, and nobody polls. Does not block. For token buckets, and AllOf of token buckets.
    Reservation reserve(std::string_view key, std::chrono::microseconds max_wait, std::uint64_t cost = 1) noexcept {
        return reserve(key, plan_.load().plan(), max_wait, cost);
    }
    Reservation reserve(std::string_view key,
                        const PlanType& plan,
                        std::chrono::microseconds max_wait,
                        std::uint64_t cost = 1) noexcept {
        static_assert(Reservable<Algorithm>,
                      "penstock: reserve needs an algorithm that gives in advance: TokenBucket, or "
                      "AllOf of token buckets; use wait_for with others");
        Decision decision = apply(Op::reserve, key, plan, cost, max_wait);
        const std::chrono::microseconds wait = decision.allowed ? decision.retry_after : std::chrono::microseconds{0};
        decision.retry_after -= wait;
        return {decision, wait};
    }

    /// Blocks until the request may pass, at most `max_wait` of real time, and takes `cost`; returns the rejection at
    /// once if the wait would be longer. Token buckets reserve a turn, so they also reject at once while those who wait
    /// already owe a full limit; others sleep for retry_after and check again.
    /// Made for clocks that run: on a ManualClock the sleep is as long and changes nothing.
    Decision wait_for(std::string_view key, std::chrono::microseconds max_wait, std::uint64_t cost = 1) noexcept {
        return wait_for(key, plan_.load().plan(), max_wait, cost);
    }
    Decision wait_for(std::string_view key,
                      const PlanType& plan,
                      std::chrono::microseconds max_wait,
                      std::uint64_t cost = 1) noexcept;

    /// Forgets the key: it is a fresh client.
    void reset(std::string_view key) noexcept { (void)apply(Op::reset, key, plan_.load().plan(), 0); }

    /// Replaces the limiter's own plan; what clients have used stays used. Throws std::invalid_argument if a parameter
    /// is out of range, and then changes nothing.
    void configure(const Algorithm& algorithm) { plan_.store(PlanType(algorithm)); }

    /// The parameters in force.
    [[nodiscard]] Algorithm algorithm() const noexcept { return plan_.load().plan().algorithm(); }

    /// The storage, bound to the algorithm, with its own counters.
    [[nodiscard]] const Bound& storage() const noexcept { return storage_; }

private:
    static constexpr bool locates = requires(Bound & bound, std::string_view key) { bound.locate(key); };
    static constexpr bool asynchronous = requires(Bound & bound, const PlanType& plan) {
        bound.async_apply(
            Op::check, std::string_view{}, plan, Micros{}, std::uint64_t{1}, [](StoreError, const Decision&) {});
    };
    static constexpr bool overlaps =
        requires(Bound & bound, const PlanType& plan, std::span<const Check> checks, std::span<Decision> decisions) {
        bound.apply(checks, plan, Micros{}, decisions, [](std::size_t, StoreError) {});
    };

    [[nodiscard]] Micros now() const noexcept {
        if constexpr (detail::is_the_stores<Clock>) {
            return store_time;
        }
        const std::int64_t now = clock_.now().count();
        constexpr auto last = static_cast<std::int64_t>(detail::end_of_time - 1);
        return static_cast<Micros>(now < 0 ? 0 : now > last ? last : now);
    }

    PENSTOCK_INLINE Decision apply(Op op,
                                   std::string_view key,
                                   const PlanType& plan,
                                   std::uint64_t cost,
                                   std::chrono::microseconds max_wait = {}) noexcept {
        Decision decision;
        if constexpr (locates) {
            const auto location = storage_.locate(key);  // first, so that reading the clock hides the cache miss
            resolve(storage_.apply(op, location, plan, now(), cost, max_wait, decision), decision);
        } else {
            resolve(storage_.apply(op, key, plan, now(), cost, max_wait, decision), decision);
        }
        return decision;
    }

    /// A store that cannot decide stops no request, unless the storage was told otherwise.
    void resolve(StoreError error, Decision& decision) const noexcept {
        if (error != StoreError::none) {
            decision = failed(error);
        }
    }

    [[nodiscard]] Decision failed(StoreError error) const noexcept {
        if constexpr (requires { storage_.failed(error); }) {
            return storage_.failed(error);
        } else {
            return detail::meaning_of(Allow{});
        }
    }

    detail::PlanCell<PlanType> plan_;
    Bound storage_;
    [[no_unique_address]] Clock clock_;
};

template <class Algorithm>
Limiter(Algorithm) -> Limiter<Algorithm>;

template <class Algorithm, class Storage>
Limiter(Algorithm, Storage) -> Limiter<Algorithm, Storage>;

template <class Algorithm, class Storage, class Clock>
Limiter(Algorithm, Storage, Clock) -> Limiter<Algorithm, Storage, Clock>;

template <class Algorithm, class Storage, class Clock>
void Limiter<Algorithm, Storage, Clock>::check(const PlanType& plan,
                                               std::span<const Check> checks,
                                               std::span<Decision> decisions) noexcept {
    const std::size_t count = (std::min)(checks.size(), decisions.size());
    if constexpr (locates) {
        constexpr std::size_t in_flight = 32;
        std::array<decltype(storage_.locate({})), in_flight> locations;
        Micros time = 0;
        for (std::size_t begin = 0; begin < count; begin += in_flight) {
            const std::size_t size = (std::min)(in_flight, count - begin);
            for (std::size_t i = 0; i < size; ++i) {
                locations[i] = storage_.locate(checks[begin + i].key);
            }
            time = begin == 0 ? now() : time;
            for (std::size_t i = 0; i < size; ++i) {
                Decision& decision = decisions[begin + i];
                resolve(storage_.apply(Op::check, locations[i], plan, time, checks[begin + i].cost, {}, decision),
                        decision);
            }
        }
    } else if constexpr (overlaps) {
        storage_.apply(checks.first(count), plan, now(), decisions, [&](std::size_t i, StoreError error) {
            resolve(error, decisions[i]);
        });
    } else {
        const Micros time = now();
        for (std::size_t i = 0; i < count; ++i) {
            resolve(storage_.apply(Op::check, checks[i].key, plan, time, checks[i].cost, {}, decisions[i]),
                    decisions[i]);
        }
    }
}

template <class Algorithm, class Storage, class Clock>
Decision Limiter<Algorithm, Storage, Clock>::wait_for(std::string_view key,
                                                      const PlanType& plan,
                                                      std::chrono::microseconds max_wait,
                                                      std::uint64_t cost) noexcept {
    if constexpr (Reservable<Algorithm>) {
        const Reservation reservation = reserve(key, plan, max_wait, cost);
        detail::sleep_for(reservation.wait);
        return reservation.decision;
    } else {
        // The wait is real time even if the limiter's clock is not, so that it ends.
        const std::chrono::microseconds longest{detail::end_of_time};
        const std::chrono::microseconds end = SteadyClock{}.now() + std::clamp(max_wait, {}, longest);
        for (;;) {
            const Decision decision = check(key, plan, cost);
            if (decision.allowed || decision.retry_after > end - SteadyClock{}.now()) {
                return decision;
            }
            detail::sleep_for(decision.retry_after);
        }
    }
}

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_LIMITER_HPP
