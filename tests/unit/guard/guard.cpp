// SPDX-License-Identifier: MIT
// What guards share: the time they go by, and batches of which they decide a part.
#include <penstock/guard/guard.hpp>

#include "../../support/flaky_storage.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Check;
using penstock::Decision;
using penstock::Micros;
using penstock::StoreError;
using penstock::TokenBucket;
using support::FlakyStorage;
namespace detail = penstock::detail;

constexpr TokenBucket bucket{.capacity = 1000, .refill = penstock::per_hour(1)};

TEST_CASE("guards go by the limiter's time, and by the calendar's where the store's decides") {
    const detail::LocalTime time;
    CHECK(time.at(0) == 0);
    CHECK(time.at(12'345) == 12'345);
    const auto today =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
    const std::chrono::microseconds found{static_cast<std::int64_t>(time.at(penstock::store_time))};
    CHECK(found > today - 1h);
    CHECK(found < today + 1h);
}

/// Takes batches, and notes how large they are.
class Counting {
public:
    template <class Failed>
    void apply(std::span<const Check> checks,
               const penstock::Plan<TokenBucket>&,
               Micros,
               std::span<Decision> decisions,
               Failed failed) noexcept {
        sizes.push_back(checks.size());
        for (std::size_t i = 0; i < checks.size(); ++i) {
            decisions[i] = {.allowed = true, .limit = checks[i].cost};
            if (checks[i].cost % 5 == 0) failed(i, StoreError::timeout);
        }
    }

    std::vector<std::size_t> sizes;
};

/// A batch of which every third is decided by the guard: what came of each, and what the storage saw.
template <class Bound>
void check_a_batch(Bound& bound) {
    std::vector<Check> checks;
    for (std::uint64_t i = 0; i < 200; ++i) {
        checks.push_back({.key = "a", .cost = i});
    }
    std::vector<Decision> decisions(checks.size());
    std::vector<StoreError> errors(checks.size(), StoreError::refused);
    std::vector<std::size_t> heard;
    detail::apply_in_runs(
        bound,
        checks,
        penstock::plan(bucket),
        0,
        std::span(decisions),
        [&](std::size_t i) {
            if (i % 3 == 0) decisions[i].limit = 7'000;
            return i % 3 == 0;
        },
        [&](std::size_t i, StoreError error) {
            errors[i] = error;
            heard.push_back(i);
        });
    CHECK(heard.size() == 133);
    for (std::size_t i = 0; i < checks.size(); ++i) {
        CAPTURE(i);
        CHECK((decisions[i].limit == 7'000) == (i % 3 == 0));
        CHECK((errors[i] == StoreError::refused) == (i % 3 == 0));
    }
}

TEST_CASE("what a guard does not decide goes to the storage together, and comes back to its place") {
    Counting counting;
    check_a_batch(counting);
    CHECK(counting.sizes == std::vector<std::size_t>{42, 43, 43, 5});
}

TEST_CASE("a storage that takes no batches is asked one by one") {
    const FlakyStorage store;
    FlakyStorage::Bound<TokenBucket> bound(store);
    check_a_batch(bound);
    CHECK(store.asked() == 133);
}

TEST_CASE("what a failure means is up to the storage beneath, if it says so") {
    const FlakyStorage store;
    CHECK(detail::failed(FlakyStorage::Bound<TokenBucket>(store), StoreError::timeout).source ==
          penstock::Source::fail_open);
    struct Denying {
        [[nodiscard]] Decision failed(StoreError) const noexcept {
            return {.allowed = false, .source = penstock::Source::fail_closed};
        }
    };
    CHECK(detail::failed(Denying{}, StoreError::timeout).source == penstock::Source::fail_closed);
}

}  // namespace
