// SPDX-License-Identifier: MIT
// Shed: when too many checks are under way, those that matter least are not sent.
#ifndef PENSTOCK_GUARD_SHED_HPP
#define PENSTOCK_GUARD_SHED_HPP

#include <penstock/check.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/guard/guard.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

PENSTOCK_BEGIN_NAMESPACE

/// How much is too much, and what happens then.
struct ShedOptions {
    /// While more calls than this are under way, checks of Priority::low are not sent. 0: they are sent only while
    /// nothing is.
    std::uint64_t in_flight = 1000;

    /// What happens to them: Allow, or Deny with a retry_after of one second.
    std::variant<Allow, Deny> on_shed = Allow{};
};

/// What a storage has in flight, and has not sent.
struct ShedStats {
    std::uint64_t in_flight = 0;  ///< calls that are under way now
    std::uint64_t shed = 0;       ///< checks that were not sent
};

/// Sheds load: counts the calls under way, of all limiters that were made of it or of its copies, and while they are
/// too many decides checks of Priority::low by itself, at once. Others always go. What comes without a priority, as
/// `check(key)` does, is Priority::normal. A batch is shed of as it begins. The storage beneath has a limit of its own
/// for what it takes at all, which should be higher. Put it around Guarded. Thread-safe.
template <class Storage>
class Shed : public detail::Guard<Storage> {
public:
    explicit Shed(const Storage& storage, const ShedOptions& options = {})
        : storage_(storage), load_(std::make_shared<Load>(options)) {}

    [[nodiscard]] ShedStats stats() const noexcept { return load_->stats(); }

    template <class Algorithm>
    class Bound;

private:
    class Load;

    Storage storage_;
    std::shared_ptr<Load> load_;
};

/// The calls under way. Thread-safe.
template <class Storage>
class Shed<Storage>::Load {
public:
    explicit Load(const ShedOptions& options) noexcept : most_(options.in_flight), decision_(decision_of(options)) {}

    [[nodiscard]] bool sheds(Priority priority) const noexcept {
        return priority == Priority::low && in_flight_.load(std::memory_order_relaxed) > most_;
    }

    /// Decides a check that is not sent.
    [[nodiscard]] Decision shed() noexcept {
        shed_.fetch_add(1, std::memory_order_relaxed);
        return decision_;
    }

    void begin() noexcept { in_flight_.fetch_add(1, std::memory_order_relaxed); }
    void end() noexcept { in_flight_.fetch_sub(1, std::memory_order_relaxed); }

    [[nodiscard]] ShedStats stats() const noexcept {
        return {.in_flight = in_flight_.load(std::memory_order_relaxed), .shed = shed_.load(std::memory_order_relaxed)};
    }

private:
    [[nodiscard]] static Decision decision_of(const ShedOptions& options) noexcept {
        Decision decision =
            std::holds_alternative<Deny>(options.on_shed) ? detail::meaning_of(Deny{}) : detail::meaning_of(Allow{});
        decision.source = Source::shed;
        return decision;
    }

    const std::uint64_t most_;
    const Decision decision_;
    std::atomic<std::uint64_t> in_flight_{0};
    std::atomic<std::uint64_t> shed_{0};
};

/// Thread-safe.
template <class Storage>
template <class Algorithm>
class Shed<Storage>::Bound
    : public detail::BoundGuard<Shed<Storage>::Bound<Algorithm>, detail::BoundOf<Storage, Algorithm>> {
    using Inner = detail::BoundOf<Storage, Algorithm>;
    using AnyPlan = Plan<Algorithm>;

public:
    explicit Bound(const Shed& shed) : load_(shed.load_), inner_(shed.storage_) {}

    StoreError apply(Op op,
                     std::string_view key,
                     const AnyPlan& plan,
                     Micros now,
                     std::uint64_t cost,
                     std::chrono::microseconds max_wait,
                     Decision& decision) noexcept {
        load_->begin();
        const StoreError error = inner_.apply(op, key, plan, now, cost, max_wait, decision);
        load_->end();
        return error;
    }

    template <class Failed>
    void apply(std::span<const Check> checks,
               const AnyPlan& plan,
               Micros now,
               std::span<Decision> decisions,
               Failed failed) noexcept {
        const bool sheds_low = load_->sheds(Priority::low);  // once, or the batch's own checks would count
        const auto here = [&](std::size_t i) {
            const bool sheds = sheds_low && checks[i].priority == Priority::low;
            if (sheds) {
                decisions[i] = load_->shed();
            } else {
                load_->begin();
            }
            return sheds;
        };
        const auto there = [&](std::size_t i, StoreError error) {
            load_->end();
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
        load_->begin();
        inner_.async_apply(
            op,
            key,
            plan,
            now,
            cost,
            [load = load_, handler = std::move(handler)](StoreError error, const Decision& decision) mutable {
                load->end();
                handler(error, decision);
            });
    }

    /// The decision of a check that is not to be sent.
    [[nodiscard]] std::optional<Decision> shed(Priority priority) const noexcept {
        if (load_->sheds(priority)) {
            return load_->shed();
        }
        if constexpr (detail::Shedding<Inner>) {
            return inner_.shed(priority);
        } else {
            return std::nullopt;
        }
    }

    /// The storage beneath, with its own counters.
    [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

    [[nodiscard]] ShedStats stats() const noexcept { return load_->stats(); }

private:
    std::shared_ptr<Load> load_;
    Inner inner_;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_SHED_HPP
