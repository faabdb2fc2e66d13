// SPDX-License-Identifier: MIT
// A hundred gateways that lease from one store which fails now and then: what leases save, and what they cost.
#include <penstock/guard/leased.hpp>
#include <penstock/penstock.hpp>

#include "fleet_simulation/drawing.hpp"
#include "picture.hpp"
#include "support.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr std::uint64_t gateway_count = 100;
constexpr std::uint64_t limit = 20'000;
constexpr microseconds window = 10s;
constexpr microseconds duration = 120s;
constexpr microseconds outages_every = 40s;
constexpr microseconds outage = 2s;

/// The store that all gateways share: a table in this process that is away for two seconds now and then.
class Store {
public:
    static constexpr bool is_shared = true;

    explicit Store(const penstock::ManualClock& clock) : shared_(std::make_shared<Shared>(clock)) {}

    [[nodiscard]] bool is_away() const { return shared_->is_away(); }
    [[nodiscard]] std::uint64_t commands() const { return shared_->commands; }

    template <class Algorithm>
    class Bound;

private:
    struct Shared {
        explicit Shared(const penstock::ManualClock& any_clock) : clock(any_clock) {}

        [[nodiscard]] bool is_away() const { return clock.now() % outages_every >= outages_every - outage; }

        penstock::ManualClock clock;
        penstock::LocalStorage::Bound<penstock::SlidingWindow> table{penstock::LocalStorage{{.max_keys = 100}}};
        std::uint64_t commands = 0;
    };

    std::shared_ptr<Shared> shared_;
};

template <class Algorithm>
class Store::Bound {
public:
    explicit Bound(const Store& store) : shared_(store.shared_) {}

    penstock::StoreError apply(penstock::Op op,
                               std::string_view key,
                               const penstock::Plan<Algorithm>& plan,
                               penstock::Micros now,
                               std::uint64_t cost,
                               microseconds max_wait,
                               penstock::Decision& decision) noexcept {
        ++shared_->commands;
        return shared_->is_away() ? penstock::StoreError::unavailable
                                  : shared_->table.apply(op, key, plan, now, cost, max_wait, decision);
    }

    /// While the store is away nothing passes but what gateways hold.
    [[nodiscard]] static penstock::Decision failed(penstock::StoreError) noexcept {
        return {.allowed = false, .retry_after = 1s, .source = penstock::Source::fail_closed};
    }

private:
    std::shared_ptr<Shared> shared_;
};

/// By how much what passed exceeds the limit, as a sliding window counts.
class Meter {
public:
    void admit(microseconds now) {
        if (const auto number = now / window; number != number_) {
            previous_ = number == number_ + 1 ? current_ : 0;
            current_ = 0;
            number_ = number;
        }
        ++current_;
        ++total_;
        const auto left = static_cast<std::uint64_t>((window - now % window).count());
        const std::uint64_t used = current_ + previous_ * left / static_cast<std::uint64_t>(window.count());
        overshoot_ = (std::max)(overshoot_, used > limit ? used - limit : 0);
    }

    [[nodiscard]] std::uint64_t overshoot() const { return overshoot_; }
    [[nodiscard]] std::uint64_t total() const { return total_; }

private:
    std::int64_t number_ = 0;
    std::uint64_t previous_ = 0;
    std::uint64_t current_ = 0;
    std::uint64_t total_ = 0;
    std::uint64_t overshoot_ = 0;
};

/// Two minutes of one client's traffic, which changes every second, through a hundred gateways. One of them crashes
/// every second, with what it holds.
drawing::Result simulate(std::uint64_t size) {
    using Gateway = penstock::Limiter<penstock::SlidingWindow, penstock::Leased<Store>, penstock::ManualClock>;
    const penstock::ManualClock clock;
    const Store store(clock);
    const penstock::SlidingWindow algorithm{.limit = limit, .window = window};
    const penstock::Leased leased{
        store, {.size = size, .gateways = gateway_count, .largest_share = 50, .entries = 64, .return_timeout = 0us}};
    std::vector<std::unique_ptr<Gateway>> gateways(gateway_count);
    const auto start = [&](std::size_t i) { gateways[i] = std::make_unique<Gateway>(algorithm, leased, clock); };
    for (std::size_t i = 0; i < gateway_count; ++i) {
        start(i);
    }

    std::mt19937_64 random(1);
    Meter meter;
    drawing::Result result{.size = size, .bound = size * gateway_count};
    constexpr std::array<std::uint64_t, 4> rates{500, 1000, 1500, 4000};
    for (microseconds second{0}; second < duration; second += 1s) {
        start(random() % gateway_count);
        const std::uint64_t rate = rates[random() % rates.size()];
        for (std::uint64_t i = 0; i < rate; ++i) {
            clock.set(second + microseconds{static_cast<std::int64_t>(i * 1'000'000 / rate)});
            const bool passes = gateways[random() % gateway_count]->check("user:42").allowed;
            ++result.checks;
            result.checks_in_outages += store.is_away() ? 1 : 0;
            if (passes) {
                meter.admit(clock.now());
                result.passed_in_outages += store.is_away() ? 1 : 0;
            }
        }
    }
    result.commands = store.commands();
    result.passed = meter.total();
    result.overshoot = meter.overshoot();
    return result;
}

std::vector<drawing::Result> simulate_all() {
    std::vector<drawing::Result> results;
    constexpr std::array<std::uint64_t, 7> sizes{1, 2, 5, 10, 20, 50, 100};
    for (const std::uint64_t size : sizes) {
        results.push_back(simulate(size));
    }
    return results;
}

constexpr std::string_view title = "100 gateways share one client's limit of 20000 requests per 10 s";

void print(const std::vector<drawing::Result>& results) {
    std::printf("%s.\n", std::string(title).c_str());
    std::puts(
        "Two minutes of changing traffic; every 40 s the store is away for 2 s, every second a gateway crashes.\n");
    const support::Table table{
        "units leased", "store commands per check", "passed", "above the limit", "at most", "passed in outages"};
    for (const drawing::Result& result : results) {
        table.row(result.size,
                  drawing::ratio(result.commands, result.checks),
                  drawing::ratio(result.passed, result.checks),
                  result.overshoot,
                  result.bound,
                  drawing::ratio(result.passed_in_outages, result.checks_in_outages));
    }
}

}  // namespace

int main(int argc, char** argv) {
    const auto draw = [](std::ostream& file) {
        drawing::Svg(file, title, simulate_all())
            .write("What leases of so many units save, and what they cost: units above the limit.");
    };
    return support::print_or_draw(
        argc, argv, "fleet_simulation", [] { print(simulate_all()); }, draw);
}
