// SPDX-License-Identifier: MIT
// SharedStorage: a store in this process that many limiters share, as gateways do, and that fails when the test says
// so. Copies are the same store.
#ifndef PENSTOCK_TESTS_SUPPORT_SHARED_STORAGE_HPP
#define PENSTOCK_TESTS_SUPPORT_SHARED_STORAGE_HPP

#include <penstock/clock.hpp>
#include <penstock/decision.hpp>
#include <penstock/plan.hpp>
#include <penstock/storage/local.hpp>
#include <penstock/store.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>

namespace support {

/// How a store may be asked: only so that the caller waits, or also so that a handler hears of it.
enum class Asking { waiting, either };

/// Calls that wait may come from any thread. What does not wait is decided when the test answers it, in its thread.
template <Asking How = Asking::waiting>
class SharedStorage {
public:
    static constexpr bool is_shared = true;
    using DefaultClock = penstock::ManualClock;

    SharedStorage() : store_(std::make_shared<Store>()) {}

    /// From now on every call fails so; with none it is well.
    void fail(penstock::StoreError error) const { store_->error = error; }

    /// What is given back from now on does not arrive, as from a process that dies.
    void lose_refunds(bool lose) const { store_->loses_refunds = lose; }

    /// How many calls of a kind came.
    [[nodiscard]] std::uint64_t calls(penstock::Op op) const { return store_->calls[static_cast<std::size_t>(op)]; }
    [[nodiscard]] std::uint64_t calls() const {
        return std::accumulate(store_->calls.begin(), store_->calls.end(), std::uint64_t{0});
    }

    /// The latest time of any call of a kind that was admitted: where the clocks of gateways differ, the store's.
    [[nodiscard]] penstock::Micros latest(penstock::Op op) const {
        return store_->latest[static_cast<std::size_t>(op)];
    }

    /// How many calls wait to be answered.
    [[nodiscard]] std::size_t pending() const { return store_->pending.size(); }

    /// Answers the oldest of them; false if there is none.
    bool answer() const {
        if (store_->pending.empty()) {
            return false;
        }
        const std::function<void()> oldest = std::move(store_->pending.front());
        store_->pending.pop_front();
        oldest();
        return true;
    }

    void answer_all() const {
        while (answer()) {
        }
    }

    /// From now on all calls are answered at once.
    void answer_at_once() const { store_->answers_at_once = true; }

    template <class Algorithm>
    class Bound;

private:
    struct Store {
        /// One for all limiters of an algorithm.
        template <class Algorithm>
        [[nodiscard]] std::shared_ptr<penstock::LocalStorage::Bound<Algorithm>> table() {
            using Table = penstock::LocalStorage::Bound<Algorithm>;
            std::shared_ptr<void>& table = tables[typeid(Table)];
            if (table == nullptr) {
                table = std::make_shared<Table>(penstock::LocalStorage{{.max_keys = 10'000, .seed = 1}});
            }
            return std::static_pointer_cast<Table>(table);
        }

        std::map<std::type_index, std::shared_ptr<void>> tables;
        std::atomic<penstock::StoreError> error{penstock::StoreError::none};
        std::atomic<bool> loses_refunds{false};
        std::array<std::atomic<std::uint64_t>, 6> calls{};
        std::array<std::atomic<penstock::Micros>, 6> latest{};
        bool answers_at_once = false;
        std::deque<std::function<void()>> pending;
    };

    std::shared_ptr<Store> store_;
};

template <Asking How>
template <class Algorithm>
class SharedStorage<How>::Bound {
public:
    explicit Bound(const SharedStorage& storage)
        : store_(storage.store_), table_(store_->template table<Algorithm>()) {}

    penstock::StoreError apply(penstock::Op op,
                               std::string_view key,
                               const penstock::Plan<Algorithm>& plan,
                               penstock::Micros now,
                               std::uint64_t cost,
                               std::chrono::microseconds max_wait,
                               penstock::Decision& decision) noexcept {
        return decide(*store_, *table_, op, key, plan, now, cost, max_wait, decision);
    }

    /// Decided when the test answers.
    template <class Handler>
    void async_apply(penstock::Op op,
                     std::string_view key,
                     const penstock::Plan<Algorithm>& plan,
                     penstock::Micros now,
                     std::uint64_t cost,
                     Handler handler) noexcept requires(How == Asking::either) {
        const auto shared_handler = std::make_shared<Handler>(std::move(handler));
        // What the store keeps must not keep the store.
        const auto call =
            [store = store_.get(), table = table_, op, own_key = std::string(key), plan, now, cost, shared_handler] {
                penstock::Decision decision;
                const penstock::StoreError error = decide(*store, *table, op, own_key, plan, now, cost, {}, decision);
                (*shared_handler)(error, error == penstock::StoreError::none ? decision : meaning());
            };
        if (store_->answers_at_once) {
            call();
        } else {
            store_->pending.emplace_back(call);
        }
    }

    [[nodiscard]] penstock::Decision failed(penstock::StoreError) const noexcept { return meaning(); }

private:
    using Table = penstock::LocalStorage::Bound<Algorithm>;

    static penstock::Decision meaning() noexcept { return penstock::detail::meaning_of(penstock::Deny{}); }

    static penstock::StoreError decide(Store& store,
                                       Table& table,
                                       penstock::Op op,
                                       std::string_view key,
                                       const penstock::Plan<Algorithm>& plan,
                                       penstock::Micros now,
                                       std::uint64_t cost,
                                       std::chrono::microseconds max_wait,
                                       penstock::Decision& decision) noexcept {
        store.calls[static_cast<std::size_t>(op)].fetch_add(1);
        if (const penstock::StoreError error = store.error; error != penstock::StoreError::none) {
            return error;
        }
        if (op == penstock::Op::refund && store.loses_refunds) {
            return penstock::StoreError::unavailable;
        }
        const penstock::StoreError error = table.apply(op, key, plan, now, cost, max_wait, decision);
        std::atomic<penstock::Micros>& latest = store.latest[static_cast<std::size_t>(op)];
        if (decision.allowed && now > latest) {
            latest = now;
        }
        return error;
    }

    std::shared_ptr<Store> store_;
    std::shared_ptr<Table> table_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_SHARED_STORAGE_HPP
