// SPDX-License-Identifier: MIT
// A hundred gateways with leases admit at most gateways x size units more than the limit, whatever the traffic, the
// clocks and the gateways do; and a client that comes to all of them gets almost all of its limit.
#include <penstock/guard/leased.hpp>

#include "../support/print.hpp"
#include "../support/random_trace.hpp"
#include "../support/shared_storage.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace {

using penstock::AllOf;
using penstock::FixedWindow;
using penstock::Leased;
using penstock::LeasedOptions;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::Micros;
using penstock::Op;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using reference::Integer;
using std::chrono::microseconds;
using trace::Random;
using Store = support::SharedStorage<>;

constexpr std::uint64_t gateway_count = 100;
constexpr std::array<std::uint64_t, 3> sizes{1, 10, 100};

// Each measures by how much the limit was exceeded, at the time of the store, which stands still for a call by a clock
// that is behind the store's.

/// The most that was admitted above capacity + refill x span, over any span.
class BucketMeter {
public:
    explicit BucketMeter(const TokenBucket& bucket)
        : capacity_(bucket.capacity), count_(bucket.refill.count), period_(bucket.refill.period.count()) {}

    [[nodiscard]] static Micros time(const Store& store) {
        return (std::max)(store.latest(Op::check), store.latest(Op::refund));
    }

    bool admit(Micros time, std::uint64_t cost, std::uint64_t overshoot) {
        // Times the period, admitted - refill x time: how far it rises from any admission on.
        const Integer before = admitted_ * period_ - Integer(time) * count_;
        least_ = admitted_ == 0 || before < least_ ? before : least_;
        admitted_ += cost;
        return before + Integer(cost) * period_ - least_ <= (capacity_ + overshoot) * period_;
    }

private:
    Integer capacity_;
    Integer count_;
    Integer period_;
    Integer admitted_ = 0;
    Integer least_ = 0;
};

/// What was admitted in the window at a time, and in the one before it.
class WindowMeter {
public:
    explicit WindowMeter(const FixedWindow& fixed)
        : limit_(fixed.limit), length_(trace::count_of(fixed.window)), weighs_(false) {}
    explicit WindowMeter(const SlidingWindow& sliding)
        : limit_(sliding.limit), length_(trace::count_of(sliding.window)), weighs_(true) {}

    [[nodiscard]] static Micros time(const Store& store) { return store.latest(Op::check); }

    bool admit(Micros time, std::uint64_t cost, std::uint64_t overshoot) {
        if (const std::uint64_t number = time / length_; number != number_) {
            previous_ = number == number_ + 1 ? current_ : 0;
            current_ = 0;
            number_ = number;
        }
        current_ += cost;
        const Integer carried = weighs_ ? Integer(previous_) * (length_ - time % length_) : Integer(0);
        return carried + Integer(current_) * length_ <= Integer(limit_ + overshoot) * length_;
    }

private:
    std::uint64_t limit_;
    std::uint64_t length_;
    bool weighs_;
    std::uint64_t number_ = 0;
    std::uint64_t previous_ = 0;
    std::uint64_t current_ = 0;
};

/// Nothing is given back to several limits: the store's time is that of the last check that it admitted.
class BothMeters {
public:
    explicit BothMeters(const AllOf<TokenBucket, FixedWindow>& both)
        : bucket_(penstock::detail::get<0>(both.parts)), window_(penstock::detail::get<1>(both.parts)) {}

    [[nodiscard]] static Micros time(const Store& store) { return store.latest(Op::check); }

    bool admit(Micros time, std::uint64_t cost, std::uint64_t overshoot) {
        return bucket_.admit(time, cost, overshoot) && window_.admit(time, cost, overshoot);
    }

private:
    BucketMeter bucket_;
    WindowMeter window_;
};

BucketMeter meter_of(const TokenBucket& bucket) {
    return BucketMeter(bucket);
}

WindowMeter meter_of(const FixedWindow& fixed) {
    return WindowMeter(fixed);
}

WindowMeter meter_of(const SlidingWindow& sliding) {
    return WindowMeter(sliding);
}

BothMeters meter_of(const AllOf<TokenBucket, FixedWindow>& both) {
    return BothMeters(both);
}

TokenBucket make(std::uint64_t limit, microseconds time, std::type_identity<TokenBucket>) {
    return {.capacity = limit, .refill = penstock::per(limit, time)};
}

FixedWindow make(std::uint64_t limit, microseconds time, std::type_identity<FixedWindow>) {
    return {.limit = limit, .window = time};
}

SlidingWindow make(std::uint64_t limit, microseconds time, std::type_identity<SlidingWindow>) {
    return {.limit = limit, .window = time};
}

AllOf<TokenBucket, FixedWindow> make(std::uint64_t limit,
                                     microseconds time,
                                     std::type_identity<AllOf<TokenBucket, FixedWindow>>) {
    return AllOf{make(limit, time, std::type_identity<TokenBucket>{}),
                 make(limit * 3, time * 4, std::type_identity<FixedWindow>{})};
}

/// Gateways that share a store, each with a clock of its own.
template <class Algorithm>
class Fleet {
    using Gateway = Limiter<Algorithm, Leased<Store>, ManualClock>;

public:
    Fleet(const Algorithm& algorithm, const LeasedOptions& options)
        : algorithm_(algorithm), options_(options), clocks_(options.gateways), gateways_(options.gateways) {
        for (std::size_t i = 0; i < gateways_.size(); ++i) {
            start(i);
        }
    }

    [[nodiscard]] Gateway& gateway(std::size_t i) { return *gateways_[i]; }
    [[nodiscard]] const ManualClock& clock(std::size_t i) const { return clocks_[i]; }
    [[nodiscard]] const Store& store() const { return store_; }

    /// It ends, and another takes its place.
    void restart(std::size_t i, bool crashes) {
        served_ += gateways_[i]->storage().stats().served;
        store_.lose_refunds(crashes);
        gateways_[i].reset();
        store_.lose_refunds(false);
        start(i);
    }

    /// Checks that were decided without the store, by gateways that have ended.
    [[nodiscard]] std::uint64_t served() const { return served_; }

private:
    void start(std::size_t i) {
        gateways_[i] = std::make_unique<Gateway>(algorithm_, Leased{store_, options_}, clocks_[i]);
    }

    Algorithm algorithm_;
    LeasedOptions options_;
    Store store_;
    std::vector<ManualClock> clocks_;
    std::vector<std::unique_ptr<Gateway>> gateways_;
    std::uint64_t served_ = 0;
};

struct Totals {
    std::uint64_t checks = 0;
    std::uint64_t admitted = 0;
    std::uint64_t served = 0;
};

/// Three windows' worth of twice the traffic that is allowed, as a stream or in bursts, by gateways that crash or
/// restart now and then.
template <class Algorithm>
void run(std::uint64_t number, std::uint64_t size, Totals& totals) {
    Random random = trace::random_of(60 + size, number);
    const std::uint64_t overshoot = gateway_count * size;
    const std::uint64_t limit = overshoot * random.log_between(1, 20);
    const std::uint64_t length = random.log_between(100'000, 3'600'000'000);
    const Algorithm algorithm = make(limit, trace::micros(length), std::type_identity<Algorithm>{});
    Fleet<Algorithm> fleet(algorithm,
                           {.size = size,
                            .gateways = gateway_count,
                            .largest_share = 100,
                            .idle_return = trace::micros(random.log_between(1, length)),
                            .max_age = trace::micros(random.log_between(1, length)),
                            .entries = 64});
    auto meter = meter_of(algorithm);

    const std::uint64_t skew = random.chance(50) ? random.log_between(1, length / 2) : 0;
    std::vector<std::uint64_t> offsets(gateway_count);
    for (std::uint64_t& offset : offsets) {
        offset = random.between(0, skew);
    }
    const std::uint64_t checks_in_window = 4 * limit / (size + 1);
    const bool in_bursts = random.chance(50);
    const std::uint64_t one_in = random.log_between(100, 100'000);
    std::uint64_t now = length;
    for (std::uint64_t step = 0; step < 3 * checks_in_window; ++step) {
        if (!in_bursts) {
            now += random.below(2 * length / checks_in_window + 1);
        } else if (random.below(checks_in_window) < 3) {
            now += random.below(length);
        }
        const std::size_t i = random.below(gateway_count);
        fleet.clock(i).set(trace::micros(now + offsets[i]));
        if (random.below(one_in) == 0) {
            fleet.restart(i, random.chance(50));
        }
        const std::uint64_t cost = random.between(1, size);
        const bool allowed = fleet.gateway(i).check("client", cost).allowed;
        ++totals.checks;
        totals.admitted += allowed ? 1 : 0;
        if (allowed && !meter.admit(meter.time(fleet.store()), cost, overshoot)) {
            FAIL("the bound is exceeded, PENSTOCK_SEED=" << trace::seed_offset() << ", size " << size << ", trace "
                                                         << number << ", at " << now << " us");
        }
    }
    for (std::size_t i = 0; i < gateway_count; ++i) {
        fleet.restart(i, false);
    }
    totals.served += fleet.served();
}

template <class Algorithm>
void run_all() {
    constexpr std::uint64_t tests = 4;
    const std::uint64_t steps = trace::step_count(600'000) / tests / sizes.size();
    for (const std::uint64_t size : sizes) {
        CAPTURE(size);
        Totals totals;
        for (std::uint64_t number = 0; totals.checks < steps; ++number) {
            run<Algorithm>(number, size, totals);
        }
        CHECK(totals.admitted > totals.checks / 10);
        CHECK(totals.admitted < totals.checks);
        CHECK((size == 1 || totals.served > totals.checks / 20));
    }
}

/// What a client gets that comes to one gateway after the other, out of what it would get from the store.
template <class Algorithm>
void check_share(std::uint64_t size, unsigned percent_of_limit) {
    const std::uint64_t limit = gateway_count * size * 20;
    const auto second = std::chrono::seconds{1};
    const Algorithm algorithm = make(limit, 10 * second, std::type_identity<Algorithm>{});
    Fleet<Algorithm> fleet(algorithm, {.size = size, .gateways = gateway_count, .entries = 64});
    const ManualClock clock;
    Limiter plain{algorithm, Store{}, clock};
    std::uint64_t admitted = 0;
    std::uint64_t admitted_without = 0;
    const std::uint64_t checks = limit * percent_of_limit / 100 * 3;
    for (std::uint64_t i = 0; i < checks; ++i) {
        const microseconds now = trace::micros(i * 30'000'000 / checks);
        clock.set(now);
        fleet.clock(i % gateway_count).set(now);
        admitted += fleet.gateway(i % gateway_count).check("client").allowed ? 1 : 0;
        admitted_without += plain.check("client").allowed ? 1 : 0;
    }
    CAPTURE(size);
    CAPTURE(percent_of_limit);
    CHECK(admitted * 100 >= admitted_without * 95);
    CHECK(admitted <= admitted_without + gateway_count * size);
}

template <class Algorithm>
void check_shares() {
    for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{50}}) {
        for (const unsigned percent_of_limit : {50U, 100U, 150U}) {
            check_share<Algorithm>(size, percent_of_limit);
        }
    }
}

}  // namespace

TEST_CASE("a token bucket is exceeded by at most what the gateways hold, over any span") {
    run_all<TokenBucket>();
}

TEST_CASE("a fixed window is exceeded by at most what the gateways hold, in any window") {
    run_all<FixedWindow>();
}

TEST_CASE("a sliding window is exceeded by at most what the gateways hold, by what its formula weighs") {
    run_all<SlidingWindow>();
}

TEST_CASE("of limits that stand together each is exceeded by at most what the gateways hold") {
    run_all<AllOf<TokenBucket, FixedWindow>>();
}

TEST_CASE("a client that comes to all gateways alike gets at least 95% of what the store alone would give") {
    SUBCASE("of a token bucket") {
        check_shares<TokenBucket>();
    }
    SUBCASE("of a fixed window") {
        check_shares<FixedWindow>();
    }
    SUBCASE("of a sliding window") {
        check_shares<SlidingWindow>();
    }
    SUBCASE("of several limits") {
        check_shares<AllOf<TokenBucket, FixedWindow>>();
    }
}
