// SPDX-License-Identifier: MIT
// Split: a very hot key counted under several sub-keys, each with its exact share of the limit.
#ifndef PENSTOCK_GUARD_SPLIT_HPP
#define PENSTOCK_GUARD_SPLIT_HPP

#include <penstock/check.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/random.hpp>
#include <penstock/detail/threads.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/guard/door.hpp>
#include <penstock/guard/guard.hpp>
#include <penstock/guard/plan_shares.hpp>
#include <penstock/key.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

/// Which clients are counted under sub-keys, and how many.
struct SplitOptions {
    /// The sub-keys of a hot key: 1 to 64. Of a limit below that, as many as it has units.
    std::uint64_t ways = 8;

    /// Which keys are split; may be called from any thread, and must not throw. All gateways that share a store must
    /// have the same answers, and the same number of ways.
    std::function<bool(std::string_view)> is_hot{};
};

namespace detail {

inline constexpr std::uint64_t most_ways = 64;

/// Any number: cheap, and nobody's secret.
[[nodiscard]] inline std::uint64_t thread_random() noexcept {
    thread_local QuickRandom random;
    return random.next();
}

/// The most that is admitted at once: what a fresh client has left, if the plan does not tell.
template <class Algorithm>
[[nodiscard]] std::uint64_t limit_of(const Plan<Algorithm>& plan) noexcept {
    if constexpr (Limited<Plan<Algorithm>>) {
        return plan.limit();
    } else {
        typename Algorithm::State fresh{};
        return Algorithm::step(fresh, plan, 0, 0, 0).remaining;
    }
}

/// An operation on all sub-keys of a key. To divide what is given back or taken, they are looked at in a round before.
class SplitRounds {
public:
    SplitRounds(Op op, std::uint64_t cost, std::uint64_t ways) noexcept
        : op_(op), cost_(cost), ways_(ways), round_(divides() ? Op::peek : op) {
        costs_.fill(divides() ? 0 : cost);
    }

    [[nodiscard]] Op op() const noexcept { return round_; }
    [[nodiscard]] std::uint64_t ways() const noexcept { return ways_; }

    /// With what cost a sub-key is asked in this round.
    [[nodiscard]] std::uint64_t cost(std::uint64_t i) const noexcept { return costs_[i]; }

    /// What one says, whose share of the limit is `limit`. Of different sub-keys from several threads.
    void answered(std::uint64_t i, std::uint64_t limit, StoreError error, const Decision& decision) noexcept {
        limits_[i] = limit;
        errors_[i] = error;
        decisions_[i] = decision;
    }

    /// When all have answered: whether there is another round.
    [[nodiscard]] bool next() noexcept {
        if (round_ == op_ || failed() != nullptr) {
            return false;
        }
        round_ = op_;
        divide();
        return true;
    }

    /// In the end: all said, in one decision, of a limit.
    [[nodiscard]] StoreError join(std::uint64_t limit, Decision& whole) const noexcept {
        if (const StoreError* error = failed(); error != nullptr) {
            whole = decisions_[static_cast<std::size_t>(error - errors_.data())];
            return *error;
        }
        whole = sum();
        whole.limit = limit;
        return StoreError::none;
    }

private:
    using Amounts = std::array<std::uint64_t, most_ways>;

    [[nodiscard]] bool divides() const noexcept { return op_ == Op::refund || op_ == Op::charge; }

    [[nodiscard]] const StoreError* failed() const noexcept {
        const auto error =
            std::find_if(errors_.begin(), errors_.end(), [](StoreError e) { return e != StoreError::none; });
        return error == errors_.end() ? nullptr : &*error;
    }

    /// What is given back goes to those that have used most, what is taken comes from those that have most left; what
    /// nobody has left becomes the debt of all, each up to its limit.
    void divide() noexcept {
        Amounts amounts{};
        for (std::uint64_t i = 0; i < ways_; ++i) {
            const std::uint64_t left = (std::min)(decisions_[i].remaining, limits_[i]);
            amounts[i] = op_ == Op::charge ? left : limits_[i] - left;
        }
        const std::uint64_t rest = spend(cost_, amounts);
        if (op_ == Op::charge) {
            spend(rest, limits_);
        }
    }

    /// Adds to the costs, where the amount is the largest first, and nowhere more than that. Returns what is left over.
    std::uint64_t spend(std::uint64_t cost, Amounts amounts) noexcept {
        while (cost > 0) {
            const auto largest = std::max_element(amounts.begin(), amounts.end());
            const std::uint64_t part = (std::min)(cost, std::exchange(*largest, 0));
            if (part == 0) {
                break;
            }
            costs_[static_cast<std::size_t>(largest - amounts.begin())] += part;
            cost -= part;
        }
        return cost;
    }

    /// The client may go on if one sub-key lets it; within its limit it is only if all are.
    [[nodiscard]] Decision sum() const noexcept {
        const std::span<const Decision> parts(decisions_.data(), static_cast<std::size_t>(ways_));
        const auto is_allowed = [](const Decision& part) { return part.allowed; };
        Decision whole{.allowed = op_ == Op::charge ? std::all_of(parts.begin(), parts.end(), is_allowed)
                                                    : std::any_of(parts.begin(), parts.end(), is_allowed),
                       .source = parts.front().source};
        std::chrono::microseconds retry_after = never;
        const std::uint64_t looked_at = op_ == Op::peek ? cost_ : 0;  // each tells what it would have left then
        for (const Decision& part : parts) {
            whole.remaining += part.remaining + (part.allowed ? looked_at : 0);
            whole.reset_after = (std::max)(whole.reset_after, part.reset_after);
            retry_after = part.allowed ? retry_after : (std::min)(retry_after, part.retry_after);
        }
        whole.remaining -= whole.allowed ? looked_at : 0;
        whole.retry_after = whole.allowed ? std::chrono::microseconds{0} : retry_after;
        return whole;
    }

    Op op_;
    std::uint64_t cost_;
    std::uint64_t ways_;
    Op round_;
    Amounts costs_{};
    Amounts limits_{};
    std::array<StoreError, most_ways> errors_{};
    std::array<Decision, most_ways> decisions_{};
};

}  // namespace detail

/// Counts each hot key under several sub-keys, which the nodes of a cluster or ring share among them: each has its
/// exact share of the limit, so that together they admit what the limit does. Other keys are none the wiser.
///
/// A check asks one sub-key, any, and if that rejects one more; of two rejections the one with the smaller retry_after
/// is told. So a client may be rejected while other sub-keys have units left, and a cost above one share is never
/// admitted. `limit` is the whole limit (of AllOf its least), `remaining` what that sub-key has left: at least so much
/// is left in all. peek, refund, charge and reset ask all sub-keys, one after the other: peek tells the sum of what is
/// left; refund gives back where most is used, charge takes where most is left. A sub-key counts as "key:split:number",
/// as Key joins it, and clients that are called so are counted under another key.
///
/// The algorithm needs a `share`. Guarded and DeniedCache belong beneath it, so that they know of sub-keys: around it a
/// cache would take the rejection of one for that of all. Shed belongs around it. Thread-safe.
template <class Storage>
class Split : public detail::Guard<Storage> {
public:
    /// Throws std::invalid_argument if an option is out of range or there is no predicate.
    explicit Split(const Storage& storage, const SplitOptions& options) : storage_(storage), options_(options) {
        if (options.ways < 1 || options.ways > detail::most_ways) {
            detail::throw_invalid("Split.ways", std::to_string(options.ways), "1 to 64");
        }
        if (!options.is_hot) {
            detail::throw_invalid("Split.is_hot", "empty", "a predicate");
        }
    }

    template <class Algorithm>
    class Bound;

private:
    Storage storage_;
    SplitOptions options_;
};

/// Thread-safe.
template <class Storage>
template <class Algorithm>
class Split<Storage>::Bound
    : public detail::BoundGuard<Split<Storage>::Bound<Algorithm>, detail::BoundOf<Storage, Algorithm>> {
    static_assert(Shareable<Algorithm>, "penstock: Split needs an algorithm that has a `share`");

    using Inner = detail::BoundOf<Storage, Algorithm>;
    using AnyPlan = Plan<Algorithm>;

public:
    explicit Bound(const Split& split)
        : is_hot_(split.options_.is_hot), ways_(std::make_shared<Ways>(split.options_.ways, inner_)),
          inner_(split.storage_) {}

    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

    ~Bound() { ways_->door.close(); }

    StoreError apply(Op op,
                     std::string_view key,
                     const AnyPlan& plan,
                     Micros now,
                     std::uint64_t cost,
                     std::chrono::microseconds max_wait,
                     Decision& decision) noexcept {
        if (is_hot_(key)) {
            const Asked asked{op, key, plan, now, cost, max_wait};
            return asks_one(op) ? ask_one(asked, decision) : ask_all(asked, decision);
        }
        if (looks_split(key)) {
            return inner_.apply(op, Key(key, mark, ""), plan, now, cost, max_wait, decision);
        }
        return inner_.apply(op, key, plan, now, cost, max_wait, decision);
    }

    template <class Failed>
    void apply(std::span<const Check> checks,
               const AnyPlan& plan,
               Micros now,
               std::span<Decision> decisions,
               Failed failed) noexcept {
        const auto here = [&](std::size_t i) {
            const auto& [key, cost, priority] = checks[i];
            if (!looks_split(key) && !is_hot_(key)) {
                return false;
            }
            const StoreError error = apply(Op::check, key, plan, now, cost, {}, decisions[i]);
            if (error != StoreError::none) {
                failed(i, error);
            }
            return true;
        };
        const auto there = [&](std::size_t i, StoreError error) {
            if (error != StoreError::none) {
                failed(i, error);
            }
        };
        detail::apply_in_runs(inner_, checks, plan, now, decisions, here, there);
    }

    template <class Handler>
    void async_apply(Op op,
                     std::string_view key,
                     const AnyPlan& plan,
                     Micros now,
                     std::uint64_t cost,
                     Handler handler) noexcept requires detail::Asynchronous<Inner, Algorithm> {
        if (is_hot_(key)) {
            const Asked asked{op, key, plan, now, cost, {}};
            if (asks_one(op)) {
                async_ask_one(asked, std::move(handler));
            } else {
                Joined<Handler>::start(ways_, asked, std::move(handler));
            }
        } else if (looks_split(key)) {
            inner_.async_apply(op, Key(key, mark, ""), plan, now, cost, std::move(handler));
        } else {
            inner_.async_apply(op, key, plan, now, cost, std::move(handler));
        }
    }

    /// The storage beneath, with its own counters.
    [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

private:
    struct Asked {
        Op op;
        std::string_view key;
        const AnyPlan& plan;
        Micros now;
        std::uint64_t cost;
        std::chrono::microseconds max_wait;
    };

    /// What handlers need, which may outlive the limiter.
    struct Ways {
        Ways(std::uint64_t number, Inner& storage) : most(number), inner(storage) {}

        /// The sub-keys of that plan.
        [[nodiscard]] std::uint64_t number(const AnyPlan& plan) const noexcept {
            return (std::clamp)(detail::limit_of<Algorithm>(plan), std::uint64_t{1}, most);
        }

        [[nodiscard]] static AnyPlan share(const AnyPlan& plan, std::uint64_t i, std::uint64_t n) noexcept {
            return detail::share_of_plan<Algorithm>(plan, i, n);
        }

        /// A reset is for all that any plan has.
        [[nodiscard]] std::uint64_t number(Op op, const AnyPlan& plan) const noexcept {
            return op == Op::reset ? most : number(plan);
        }

        [[nodiscard]] static AnyPlan share(Op op, const AnyPlan& plan, std::uint64_t i, std::uint64_t n) noexcept {
            return op == Op::reset ? plan : share(plan, i, n);
        }

        const std::uint64_t most;
        Inner& inner;  // only inside of the door
        detail::Door door{};
    };

    template <class Handler>
    class Joined;

    /// A second try. Its handler is called when the door is left, and not before: it may be what ends the limiter.
    template <class Handler>
    class Second {
    public:
        Second(Handler handler, const Decision& rejection) : handler_(std::move(handler)), decision_(rejection) {}

        void answered(StoreError failure, Decision other) noexcept {
            other.limit = decision_.limit;
            if (failure == StoreError::none && is_better(other, decision_)) {
                decision_ = other;
            }
            go_on();
        }

        /// Called twice, by two threads maybe.
        void go_on() noexcept {
            if (half_done_.exchange(true, std::memory_order_acq_rel)) {
                handler_(StoreError::none, decision_);
            }
        }

    private:
        Handler handler_;
        Decision decision_;
        std::atomic<bool> half_done_{false};
    };

    static constexpr std::string_view mark = "split";

    [[nodiscard]] static Key sub_key(std::string_view key, std::uint64_t i) { return Key(key, mark, i); }

    /// Whether a key ends as sub-keys do, or as what replaces such a key does.
    [[nodiscard]] static bool looks_split(std::string_view key) noexcept {
        return key.substr(0, key.find_last_not_of("0123456789") + 1).ends_with(":split:");
    }

    [[nodiscard]] static constexpr bool asks_one(Op op) noexcept { return op == Op::check || op == Op::reserve; }

    /// Which sub-key to try after a rejection; the same one if there is no other to be tried.
    [[nodiscard]] static std::uint64_t second_after(std::uint64_t first,
                                                    std::uint64_t n,
                                                    const Decision& rejection) noexcept {
        if (rejection.retry_after == never || n == 1) {
            return n - 1;  // whose share is never smaller than another's
        }
        return (first + 1 + detail::thread_random() % (n - 1)) % n;
    }

    [[nodiscard]] static bool is_better(const Decision& second, const Decision& first) noexcept {
        return second.allowed || second.retry_after < first.retry_after;
    }

    StoreError ask_one(const Asked& asked, Decision& decision) noexcept {
        const std::uint64_t n = ways_->number(asked.plan);
        const std::uint64_t first = detail::thread_random() % n;
        if (const StoreError error = ask(asked, first, n, decision); error != StoreError::none) {
            return error;
        }
        if (!decision.allowed) {
            const std::uint64_t second = second_after(first, n, decision);
            Decision other;
            if (second != first && ask(asked, second, n, other) == StoreError::none && is_better(other, decision)) {
                decision = other;
            }
        }
        decision.limit = detail::limit_of<Algorithm>(asked.plan);
        return StoreError::none;
    }

    StoreError ask(const Asked& asked, std::uint64_t i, std::uint64_t n, Decision& decision) noexcept {
        return inner_.apply(asked.op,
                            sub_key(asked.key, i),
                            ways_->share(asked.plan, i, n),
                            asked.now,
                            asked.cost,
                            asked.max_wait,
                            decision);
    }

    /// The second is asked where the first has answered.
    template <class Handler>
    void async_ask_one(const Asked& asked, Handler handler) noexcept {
        const std::uint64_t n = ways_->number(asked.plan);
        const std::uint64_t first = detail::thread_random() % n;
        inner_.async_apply(
            asked.op,
            sub_key(asked.key, first),
            ways_->share(asked.plan, first, n),
            asked.now,
            asked.cost,
            [ways = ways_,
             first,
             n,
             op = asked.op,
             key = std::string(asked.key),
             plan = asked.plan,
             now = asked.now,
             cost = asked.cost,
             handler = std::move(handler)](StoreError error, Decision decision) mutable {
                if (error == StoreError::none) {
                    decision.limit = detail::limit_of<Algorithm>(plan);
                    const std::uint64_t second = decision.allowed ? first : second_after(first, n, decision);
                    if (second != first && ways->door.enter()) {
                        const auto retry = std::make_shared<Second<Handler>>(std::move(handler), decision);
                        ways->inner.async_apply(
                            op,
                            sub_key(key, second),
                            ways->share(plan, second, n),
                            now,
                            cost,
                            [retry](StoreError failure, const Decision& other) { retry->answered(failure, other); });
                        ways->door.leave();
                        retry->go_on();
                        return;
                    }
                }
                handler(error, decision);
            });
    }

    StoreError ask_all(const Asked& asked, Decision& decision) noexcept {
        detail::SplitRounds rounds(asked.op, asked.cost, ways_->number(asked.op, asked.plan));
        do {
            for (std::uint64_t i = 0; i < rounds.ways(); ++i) {
                const AnyPlan share = ways_->share(asked.op, asked.plan, i, rounds.ways());
                Decision part;
                const StoreError error =
                    inner_.apply(rounds.op(), sub_key(asked.key, i), share, asked.now, rounds.cost(i), {}, part);
                rounds.answered(i, detail::limit_of<Algorithm>(share), error, part);
            }
        } while (rounds.next());
        return rounds.join(detail::limit_of<Algorithm>(asked.plan), decision);
    }

    std::function<bool(std::string_view)> is_hot_;
    std::shared_ptr<Ways> ways_;
    Inner inner_;
};

/// An operation on all sub-keys, each round of which ends with the last answer.
template <class Storage>
template <class Algorithm>
template <class Handler>
class Split<Storage>::Bound<Algorithm>::Joined {
public:
    static void start(const std::shared_ptr<Ways>& ways, const Asked& asked, Handler handler) noexcept {
        send(std::make_shared<Joined>(ways, asked, std::move(handler)));
    }

    Joined(const std::shared_ptr<Ways>& ways, const Asked& asked, Handler handler)
        : ways_(ways), key_(asked.key), plan_(asked.plan), now_(asked.now),
          rounds_(asked.op, asked.cost, ways->number(asked.op, asked.plan)), op_(asked.op),
          handler_(std::move(handler)) {}

private:
    static void send(const std::shared_ptr<Joined>& joined) noexcept {
        Joined& all = *joined;
        if (!all.ways_->door.enter()) {
            all.end(StoreError::shut_down);
            return;
        }
        const std::uint64_t number = all.rounds_.ways();
        all.missing_.store(number + 1, std::memory_order_relaxed);  // and this, so that the door is left first
        for (std::uint64_t i = 0; i < number; ++i) {
            all.ask(joined, i);
        }
        all.ways_->door.leave();
        arrive(joined);
    }

    void ask(const std::shared_ptr<Joined>& joined, std::uint64_t i) noexcept {
        const AnyPlan share = ways_->share(op_, plan_, i, rounds_.ways());
        ways_->inner.async_apply(
            rounds_.op(),
            sub_key(key_, i),
            share,
            now_,
            rounds_.cost(i),
            [joined, i, limit = detail::limit_of<Algorithm>(share)](StoreError error, const Decision& decision) {
                joined->rounds_.answered(i, limit, error, decision);
                arrive(joined);
            });
    }

    static void arrive(const std::shared_ptr<Joined>& joined) noexcept {
        if (joined->missing_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
            return;
        }
        if (joined->rounds_.next()) {
            send(joined);
        } else {
            joined->end(StoreError::none);
        }
    }

    void end(StoreError reason) noexcept {
        Decision decision;
        const StoreError error = rounds_.join(detail::limit_of<Algorithm>(plan_), decision);
        handler_(reason != StoreError::none ? reason : error, decision);
    }

    const std::shared_ptr<Ways> ways_;
    const std::string key_;
    const AnyPlan plan_;
    const Micros now_;
    detail::SplitRounds rounds_;
    const Op op_;
    Handler handler_;
    std::atomic<std::uint64_t> missing_{0};
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_SPLIT_HPP
