// SPDX-License-Identifier: MIT
// FlakyStorage: a store in this process with as many nodes as a test likes, which fail, hesitate and answer handlers
// when the test says so. Copies are the same store.
#ifndef PENSTOCK_TESTS_SUPPORT_FLAKY_STORAGE_HPP
#define PENSTOCK_TESTS_SUPPORT_FLAKY_STORAGE_HPP

#include <penstock/storage/local.hpp>
#include <penstock/store.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace support {

class FlakyStorage {
public:
    static constexpr bool is_shared = true;
    using DefaultClock = penstock::ManualClock;

    explicit FlakyStorage(std::size_t nodes = 1) : store_(std::make_shared<Store>(nodes)) {}

    /// From now on what a node is asked fails so; with none it is well.
    void fail(penstock::StoreError error, std::size_t node = 0) const { store_->errors[node] = error; }

    /// From now on it takes so long to answer.
    void delay(std::chrono::microseconds time) const { store_->delay = time.count(); }

    /// How many calls came.
    [[nodiscard]] std::uint64_t asked() const { return store_->asked; }

    /// A key of that node.
    [[nodiscard]] static std::string key_of(std::size_t node) { return std::string(1, static_cast<char>('a' + node)); }

    /// Answers the oldest call of those that do not wait; false if there is none.
    bool answer() const {
        if (store_->pending.empty()) {
            return false;
        }
        const std::function<void()> oldest = std::move(store_->pending.front());
        store_->pending.pop_front();
        oldest();
        return true;
    }

    /// What a client has left, whatever fails.
    template <class Algorithm>
    [[nodiscard]] penstock::Decision peek(std::string_view key,
                                          const Algorithm& algorithm,
                                          std::chrono::microseconds now) const {
        penstock::Decision decision;
        (void)store_->template table<Algorithm>().apply(penstock::Op::peek,
                                                        key,
                                                        penstock::plan(algorithm),
                                                        static_cast<penstock::Micros>(now.count()),
                                                        1,
                                                        {},
                                                        decision);
        return decision;
    }

    template <class Algorithm>
    class Bound;

private:
    struct Store {
        explicit Store(std::size_t nodes) : errors(nodes) {}

        /// One for all limiters of an algorithm.
        template <class Algorithm>
        [[nodiscard]] penstock::LocalStorage::Bound<Algorithm>& table() {
            using Table = penstock::LocalStorage::Bound<Algorithm>;
            if (tables == nullptr) {
                tables = std::make_shared<Table>(penstock::LocalStorage{{.max_keys = 1000, .seed = 1}});
            }
            return *static_cast<Table*>(tables.get());
        }

        std::vector<std::atomic<penstock::StoreError>> errors;
        std::atomic<std::int64_t> delay{0};
        std::atomic<std::uint64_t> asked{0};
        std::deque<std::function<void()>> pending;
        std::shared_ptr<void> tables;
    };

    std::shared_ptr<Store> store_;
};

template <class Algorithm>
class FlakyStorage::Bound {
public:
    explicit Bound(const FlakyStorage& storage) : store_(storage.store_), table_(store_->table<Algorithm>()) {}

    penstock::StoreError apply(penstock::Op op,
                               std::string_view key,
                               const penstock::Plan<Algorithm>& plan,
                               penstock::Micros now,
                               std::uint64_t cost,
                               std::chrono::microseconds max_wait,
                               penstock::Decision& decision) noexcept {
        ++store_->asked;
        if (const std::int64_t delay = store_->delay; delay > 0) {
            std::this_thread::sleep_for(std::chrono::microseconds{delay});
        }
        const penstock::StoreError error = store_->errors[node_of(key, now)];
        return error != penstock::StoreError::none ? error : table_.apply(op, key, plan, now, cost, max_wait, decision);
    }

    template <class Handler>
    void async_apply(penstock::Op op,
                     std::string_view key,
                     const penstock::Plan<Algorithm>& plan,
                     penstock::Micros now,
                     std::uint64_t cost,
                     Handler handler) noexcept {
        const auto shared = std::make_shared<Handler>(std::move(handler));  // std::function wants copies
        store_->pending.push_back(
            [store = store_, &table = table_, op, key = std::string(key), plan, now, cost, shared] {
                ++store->asked;
                penstock::Decision decision;
                const penstock::StoreError error = store->errors[node(key, store->errors.size())];
                if (error == penstock::StoreError::none) {
                    (void)table.apply(op, key, plan, now, cost, {}, decision);
                }
                (*shared)(error, decision);
            });
    }

    [[nodiscard]] std::size_t node_of(std::string_view key, penstock::Micros) const noexcept {
        return node(key, store_->errors.size());
    }

private:
    [[nodiscard]] static std::size_t node(std::string_view key, std::size_t nodes) noexcept {
        return key.empty() ? 0 : static_cast<std::size_t>(key.front() - 'a') % nodes;
    }

    std::shared_ptr<Store> store_;
    penstock::LocalStorage::Bound<Algorithm>& table_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_FLAKY_STORAGE_HPP
