// SPDX-License-Identifier: MIT
// Nested: LocalStorage under two guards, which of them is said when the program runs. So every test is compiled once
// for all nestings.
#ifndef PENSTOCK_TESTS_SUPPORT_NESTED_HPP
#define PENSTOCK_TESTS_SUPPORT_NESTED_HPP

#include <penstock/guard/denied_cache.hpp>
#include <penstock/guard/guarded.hpp>
#include <penstock/guard/leased.hpp>
#include <penstock/guard/shed.hpp>
#include <penstock/guard/split.hpp>
#include <penstock/storage/local.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace support {

namespace nested {

struct OfGuarded {
    template <class Storage>
    static auto over(const Storage& storage) {
        return penstock::Guarded{storage};
    }
};

struct OfDeniedCache {
    template <class Storage>
    static auto over(const Storage& storage) {
        return penstock::DeniedCache{storage, {.entries = 1000}};
    }
};

struct OfShed {
    template <class Storage>
    static auto over(const Storage& storage) {
        return penstock::Shed{storage};
    }
};

/// Over clients none of which is hot: of those that are each share is exact, not what one client is told.
struct OfSplit {
    template <class Storage>
    static auto over(const Storage& storage) {
        return penstock::Split{storage, {.is_hot = [](std::string_view) { return false; }}};
    }
};

/// One unit at a time is asked for when it is needed: nothing is held, so that every decision is the store's.
struct OfLeased {
    template <class Storage>
    static auto over(const Storage& storage) {
        return penstock::Leased{storage, {.size = 1}};
    }
};

using Guards = std::tuple<OfGuarded, OfDeniedCache, OfShed, OfSplit, OfLeased>;
inline constexpr std::size_t guards = std::tuple_size_v<Guards>;

/// Of guard `Number / guards` over guard `Number % guards`.
template <std::size_t Number>
auto make() {
    using Outer = std::tuple_element_t<Number / guards, Guards>;
    using Inner = std::tuple_element_t<Number % guards, Guards>;
    return Outer::over(Inner::over(penstock::LocalStorage{{.max_keys = 10'000, .seed = 1}}));
}

template <class Algorithm>
class AnyBound {
public:
    virtual ~AnyBound() = default;
    virtual penstock::StoreError apply(penstock::Op op,
                                       std::string_view key,
                                       const penstock::Plan<Algorithm>& plan,
                                       penstock::Micros now,
                                       std::uint64_t cost,
                                       std::chrono::microseconds max_wait,
                                       penstock::Decision& decision) noexcept = 0;
};

template <class Algorithm, class Storage>
class BoundOf final : public AnyBound<Algorithm> {
public:
    explicit BoundOf(const Storage& storage) : bound_(storage) {}

    penstock::StoreError apply(penstock::Op op,
                               std::string_view key,
                               const penstock::Plan<Algorithm>& plan,
                               penstock::Micros now,
                               std::uint64_t cost,
                               std::chrono::microseconds max_wait,
                               penstock::Decision& decision) noexcept override {
        return bound_.apply(op, key, plan, now, cost, max_wait, decision);
    }

private:
    typename Storage::template Bound<Algorithm> bound_;
};

template <class Algorithm, std::size_t... Number>
std::unique_ptr<AnyBound<Algorithm>> bind(std::size_t number, std::index_sequence<Number...>) {
    std::unique_ptr<AnyBound<Algorithm>> bound;
    const auto bind_if = [&]<std::size_t Each>() {
        if (Each == number) {
            const auto storage = make<Each>();
            bound = std::make_unique<BoundOf<Algorithm, std::remove_const_t<decltype(storage)>>>(storage);
        }
    };
    (bind_if.template operator()<Number>(), ...);
    return bound;
}

}  // namespace nested

class Nested {
public:
    /// The nesting of which the environment has the number.
    Nested() : number_(std::stoul(std::getenv("PENSTOCK_NESTING"))) {}

    template <class Algorithm>
    class Bound {
    public:
        explicit Bound(const Nested& storage)
            : bound_(nested::bind<Algorithm>(storage.number_,
                                             std::make_index_sequence<nested::guards * nested::guards>{})) {}

        penstock::StoreError apply(penstock::Op op,
                                   std::string_view key,
                                   const penstock::Plan<Algorithm>& plan,
                                   penstock::Micros now,
                                   std::uint64_t cost,
                                   std::chrono::microseconds max_wait,
                                   penstock::Decision& decision) noexcept {
            return bound_->apply(op, key, plan, now, cost, max_wait, decision);
        }

    private:
        std::unique_ptr<nested::AnyBound<Algorithm>> bound_;
    };

private:
    std::size_t number_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_NESTED_HPP
