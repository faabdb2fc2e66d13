// SPDX-License-Identifier: MIT
// Leased: takes several units of a client at a time from a shared storage, and decides by them in this process.
#ifndef PENSTOCK_GUARD_LEASED_HPP
#define PENSTOCK_GUARD_LEASED_HPP

#include <penstock/check.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/guard/guard.hpp>
#include <penstock/guard/lease.hpp>
#include <penstock/guard/lease_desk.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

/// Saves calls of the storage: of a client that comes often, up to `size` units are taken at a time, and its checks are
/// decided here (Source::lease) while they last, in about 100 ns. A lease begins with what one check costs and doubles
/// as long as it is used up; where the storage can be asked without waiting it is renewed before it runs out. What is
/// not used goes back when the client is idle, when its plan changes, when it makes place for another and when the
/// limiter is destroyed; what ends with its window, or belongs to a process that dies, is lost to the client. A client
/// that the store rejects is rejected here until retry_after or `max_age` has passed.
/// In any window and over any span all gateways together admit at most gateways x size units more than the limit.
/// Plans for which that is too much are checked one by one. Copies share nothing. Thread-safe.
template <class Storage>
class Leased : public detail::Guard<Storage> {
public:
    /// Throws std::invalid_argument if an option is out of range.
    explicit Leased(const Storage& storage, const LeasedOptions& options = {}) : storage_(storage), options_(options) {
        detail::validate_leased(options);
    }

    template <class Algorithm>
    class Bound;

private:
    Storage storage_;
    LeasedOptions options_;
};

/// The leases of one limiter. Thread-safe.
template <class Storage>
template <class Algorithm>
class Leased<Storage>::Bound
    : public detail::BoundGuard<Leased<Storage>::Bound<Algorithm>, detail::BoundOf<Storage, Algorithm>> {
    using Inner = detail::BoundOf<Storage, Algorithm>;
    using AnyPlan = Plan<Algorithm>;

public:
    explicit Bound(const Leased& leased)
        : desk_(std::make_shared<Desk>(leased.options_, inner_)), inner_(leased.storage_) {}

    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

    /// Gives back what is held; waits at most the return_timeout. On the thread of an asynchronous storage, in a
    /// handler, it waits that long for nothing.
    ~Bound() { desk_->close(); }

    StoreError apply(Op op,
                     std::string_view key,
                     const AnyPlan& plan,
                     Micros now,
                     std::uint64_t cost,
                     std::chrono::microseconds max_wait,
                     Decision& decision) noexcept {
        if (op == Op::check && desk_->leases(plan)) [[likely]] {
            return check(key, plan, now, cost, decision);
        }
        const StoreError error = inner_.apply(op, key, plan, now, cost, max_wait, decision);
        desk_->amend(op, key, plan, now, cost, error, decision);
        return error;
    }

    template <class Failed>
    void apply(std::span<const Check> checks,
               const AnyPlan& plan,
               Micros now,
               std::span<Decision> decisions,
               Failed failed) noexcept {
        const bool leases = desk_->leases(plan);
        for (std::size_t begin = 0; begin < checks.size(); begin += detail::longest_run) {
            const std::size_t size = (std::min)(detail::longest_run, checks.size() - begin);
            std::array<Check, detail::longest_run> asked;
            std::array<LeaseAsk, detail::longest_run> asks;
            std::copy_n(checks.begin() + static_cast<std::ptrdiff_t>(begin), size, asked.begin());
            const auto here = [&](std::size_t i) {
                const std::size_t number = begin + i;
                if (!leases ||
                    desk_->decide(checks[number].key, plan, now, checks[number].cost, decisions[number], asks[i])) {
                    return leases;
                }
                asked[i].cost = asks[i].amount;
                return false;
            };
            const auto there = [&](std::size_t i, StoreError error) {
                const std::size_t number = begin + i;
                if (leases) {
                    error = conclude(checks[number].key, plan, now, asks[i], error, decisions[number]);
                }
                if (error != StoreError::none) {
                    failed(number, error);
                }
            };
            detail::apply_in_runs(inner_,
                                  std::span<const Check>(asked).first(size),
                                  plan,
                                  now,
                                  decisions.subspan(begin, size),
                                  here,
                                  there);
        }
    }

    /// The handler is called here if the lease decides.
    template <class Handler>
    void async_apply(Op op,
                     std::string_view key,
                     const AnyPlan& plan,
                     Micros now,
                     std::uint64_t cost,
                     Handler handler) noexcept requires detail::Asynchronous<Inner, Algorithm> {
        if (op != Op::check || !desk_->leases(plan)) {
            inner_.async_apply(
                op,
                key,
                plan,
                now,
                cost,
                [desk = desk_, op, own_key = std::string(key), plan, now, cost, handler = std::move(handler)](
                    StoreError error, Decision decision) mutable {
                    desk->amend(op, own_key, plan, now, cost, error, decision);
                    handler(error, decision);
                });
            return;
        }
        Decision decision;
        LeaseAsk ask;
        if (desk_->decide(key, plan, now, cost, decision, ask)) {
            handler(StoreError::none, decision);
        } else {
            Desk::ask(desk_, key, plan, now, ask, std::move(handler));
        }
    }

    /// The storage beneath, with its own counters.
    [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

    /// Takes the lock of each of 64 shards for a moment.
    [[nodiscard]] LeasedStats stats() const noexcept { return desk_->stats(); }

private:
    using LeaseAsk = detail::LeaseAsk;
    using Desk = detail::LeaseDesk<Inner, Algorithm>;

    StoreError check(
        std::string_view key, const AnyPlan& plan, Micros now, std::uint64_t cost, Decision& decision) noexcept {
        LeaseAsk ask;
        if (desk_->decide(key, plan, now, cost, decision, ask)) [[likely]] {
            return StoreError::none;
        }
        const StoreError error = inner_.apply(Op::check, key, plan, now, ask.amount, {}, decision);
        return conclude(key, plan, now, ask, error, decision);
    }

    /// Asks for less if the store has less, and keeps what came.
    StoreError conclude(std::string_view key,
                        const AnyPlan& plan,
                        Micros now,
                        LeaseAsk& ask,
                        StoreError error,
                        Decision& decision) noexcept {
        while (error == StoreError::none && ask.shrink(decision)) {
            error = inner_.apply(Op::check, key, plan, now, ask.amount, {}, decision);
        }
        desk_->answered(key, plan, now, ask, error, decision);
        return error;
    }

    std::shared_ptr<Desk> desk_;
    Inner inner_;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_LEASED_HPP
