// SPDX-License-Identifier: MIT
// No limit is exceeded, whatever the traffic and the clock do: what was admitted is added up and held against the
// limit.
#include "../support/print.hpp"
#include "../support/random_trace.hpp"
#include "../support/rational_reference.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using reference::Integer;
using std::chrono::microseconds;
using trace::Random;

/// In every span that begins and ends with an admission: at most capacity + refill x span.
class BucketMeter {
public:
    BucketMeter(const TokenBucket& bucket, std::uint64_t /*phase*/)
        : capacity_(bucket.capacity), count_(bucket.refill.count), period_(bucket.refill.period.count()) {}

    /// `slack` is added to every span.
    bool admit(const Integer& time, const Integer& cost, const Integer& slack = 0) {
        // Times the period, admitted - refill x time: it must not rise by more than the capacity from any admission on.
        const Integer before = admitted_ * period_ - time * count_;
        least_ = first_ || before < least_ ? before : least_;
        first_ = false;
        admitted_ += cost;
        return before + cost * period_ - least_ <= capacity_ * period_ + slack * count_;
    }

private:
    Integer capacity_;
    Integer count_;
    Integer period_;
    Integer admitted_ = 0;
    Integer least_ = 0;
    bool first_ = true;
};

/// What was admitted in the last window with any, and in the one before it.
class WindowSums {
public:
    WindowSums(microseconds window, penstock::Align align, microseconds offset, std::uint64_t phase)
        : window_(window.count()),
          grid_(window_, offset.count() + (align == penstock::Align::staggered ? Integer(phase) : Integer(0))) {}

    void add(const Integer& time, const Integer& cost) {
        const Integer start = grid_.start_of(time);
        if (start != start_) {
            previous_ = start == start_ + window_ ? current_ : Integer(0);
            current_ = 0;
            start_ = start;
        }
        current_ += cost;
    }

    const Integer& window() const { return window_; }
    const Integer& current() const { return current_; }
    Integer weighted_previous(const Integer& time) const { return previous_ * (start_ + window_ - time); }

private:
    Integer window_;
    reference::Grid grid_;
    Integer start_ = -1;
    Integer previous_ = 0;
    Integer current_ = 0;
};

class FixedMeter {
public:
    FixedMeter(const FixedWindow& fixed, std::uint64_t phase)
        : limit_(fixed.limit), sums_(fixed.window, fixed.align, fixed.offset, phase) {}

    bool admit(const Integer& time, const Integer& cost) {
        sums_.add(time, cost);
        return sums_.current() <= limit_;
    }

private:
    Integer limit_;
    WindowSums sums_;
};

class SlidingMeter {
public:
    SlidingMeter(const SlidingWindow& sliding, std::uint64_t phase)
        : limit_(sliding.limit), sums_(sliding.window, sliding.align, microseconds(0), phase) {}

    bool admit(const Integer& time, const Integer& cost) {
        sums_.add(time, cost);
        return sums_.weighted_previous(time) + sums_.current() * sums_.window() <= limit_ * sums_.window();
    }

private:
    Integer limit_;
    WindowSums sums_;
};

BucketMeter meter_of(const TokenBucket& bucket, std::uint64_t phase) {
    return {bucket, phase};
}

FixedMeter meter_of(const FixedWindow& fixed, std::uint64_t phase) {
    return {fixed, phase};
}

SlidingMeter meter_of(const SlidingWindow& sliding, std::uint64_t phase) {
    return {sliding, phase};
}

template <class... Meters>
class AllMeters {
public:
    explicit AllMeters(Meters... meters) : meters_(std::move(meters)...) {}

    bool admit(const Integer& time, const Integer& cost) {
        return std::apply([&](auto&... meter) { return (meter.admit(time, cost) && ...); }, meters_);
    }

private:
    std::tuple<Meters...> meters_;
};

template <class... Parts>
auto meter_of(const std::tuple<Parts...>& parts, std::uint64_t phase) {
    return std::apply([&](const auto&... part) { return AllMeters(meter_of(part, phase)...); }, parts);
}

const std::array<std::string, 3> keys{"one", "another", ""};

struct Totals {
    std::uint64_t checks = 0;
    std::uint64_t admitted = 0;
};

/// Random checks of a few clients against a clock that does as it likes.
template <class Algorithm>
class Flood {
public:
    explicit Flood(std::uint64_t number)
        : number_(number), random_(trace::random_of(40, number)),
          parameters_(trace::random_parameters(random_, trace::random_range(random_), std::type_identity<Algorithm>{})),
          limiter_(trace::algorithm_of(parameters_), penstock::LocalStorage{{.max_keys = 100, .seed = 1}}, clock_),
          now_(trace::random_start(random_, trace::time_scale(parameters_))) {
        for (const std::string& key : keys) {
            clients_.push_back({meter_of(parameters_, penstock::stagger_hash(key)), 0});
        }
    }

    void run(Totals& totals) {
        for (int step = 0; step < 500; ++step) {
            now_ =
                trace::next_time(random_, now_, {last_.retry_after, last_.reset_after}, trace::time_scale(parameters_));
            clock_.set(trace::micros(now_));
            check(random_.bits() % keys.size(), totals);
        }
    }

private:
    using Parameters = trace::ParametersOf<Algorithm>;

    struct Client {
        decltype(meter_of(std::declval<Parameters>(), 0)) meter;
        std::uint64_t stamp;  // a clock that was set back stands still until it has caught up
    };

    void check(std::size_t key, Totals& totals) {
        const std::uint64_t remaining = limiter_.peek(keys[key], 0).remaining;
        const std::uint64_t cost = trace::random_cost(random_, remaining, trace::limit_of(parameters_));
        last_ = limiter_.check(keys[key], cost);
        ++totals.checks;
        if (last_.allowed && cost > 0) {
            ++totals.admitted;
            Client& client = clients_[key];
            client.stamp = (std::max)(client.stamp, now_);
            if (!client.meter.admit(client.stamp, cost)) {
                fail(cost);
            }
        }
    }

    void fail(std::uint64_t cost) const {
        std::ostringstream out;
        out << "the limit is exceeded\n  PENSTOCK_SEED=" << trace::seed_offset() << ", trace " << number_ << ", ";
        trace::describe(out, parameters_);
        out << " at " << now_ << " us, cost " << cost;
        FAIL(out.str());
    }

    std::uint64_t number_;
    Random random_;
    Parameters parameters_;
    penstock::ManualClock clock_;
    penstock::Limiter<Algorithm, penstock::LocalStorage, penstock::ManualClock> limiter_;
    std::uint64_t now_;
    Decision last_;
    std::vector<Client> clients_;
};

/// Everybody waits as long as it takes. Waits are rounded up to whole microseconds, so two turns may come one closer
/// than they should.
void queue_up(std::uint64_t number, Totals& totals) {
    Random random = trace::random_of(41, number);
    const auto bucket =
        trace::random_parameters(random, trace::random_range(random), std::type_identity<TokenBucket>{});
    const penstock::ManualClock clock;
    penstock::Limiter limiter{bucket, penstock::LocalStorage{{.max_keys = 100, .seed = 1}}, clock};
    BucketMeter meter(bucket, 0);
    std::uint64_t now = random.log_between(0, trace::max_time / 2);
    Decision last;
    for (int step = 0; step < 500; ++step) {
        now = (std::max)(
            now, trace::next_time(random, now, {last.retry_after, last.reset_after}, trace::time_scale(bucket)));
        clock.set(trace::micros(now));
        const std::uint64_t cost = trace::random_cost(random, limiter.peek("", 0).remaining, bucket.capacity);
        const penstock::Reservation reservation = limiter.reserve("", penstock::never, cost);
        last = reservation.decision;
        ++totals.checks;
        if (reservation && cost > 0) {
            ++totals.admitted;
            if (!meter.admit(Integer(now) + reservation.wait.count(), cost, 1)) {
                FAIL("the limit is exceeded, PENSTOCK_SEED=" << trace::seed_offset() << ", trace " << number);
            }
        }
    }
}

template <class Run>
void run_all(Run run) {
    constexpr std::uint64_t tests = 6;
    const std::uint64_t steps = trace::step_count(3'000'000) / tests;
    Totals totals;
    for (std::uint64_t number = 0; totals.checks < steps; ++number) {
        run(number, totals);
    }
    CHECK(totals.admitted > totals.checks / 10);
    CHECK(totals.admitted < totals.checks);
}

template <class Algorithm>
void flood() {
    run_all([](std::uint64_t number, Totals& totals) { Flood<Algorithm>(number).run(totals); });
}

}  // namespace

TEST_CASE("a token bucket admits at most its capacity and the refill of the span, in any span") {
    flood<TokenBucket>();
}

TEST_CASE("a fixed window admits at most its limit in any window") {
    flood<FixedWindow>();
}

TEST_CASE("a sliding window admits at most its limit of what its formula weighs") {
    flood<SlidingWindow>();
}

TEST_CASE("limits that stand together are each kept") {
    SUBCASE("a bucket and a fixed window") {
        flood<AllOf<TokenBucket, FixedWindow>>();
    }
    SUBCASE("one of each") {
        flood<AllOf<SlidingWindow, TokenBucket, FixedWindow>>();
    }
}

TEST_CASE("those who wait for their turn keep to the token bucket's limit") {
    run_all(queue_up);
}
