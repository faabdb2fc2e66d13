// SPDX-License-Identifier: MIT
// Limiters over connections that cut, merge, delay and break: they decide as one in memory does, each for its caller.
#include "../support/proxy.hpp"
#include "../support/fault.hpp"
#include "../support/print.hpp"
#include "../support/random.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using fault::await;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Layout;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::RedisStorage;
using penstock::Reservation;
using penstock::ServerClock;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::TokenBucket;
using support::Proxy;
using support::Random;

const support::RedisServer& server() {
    static const support::RedisServer shared;
    return shared;
}

/// One that waits as long as it takes, under a prefix of its own.
RedisStorage storage_behind(const Proxy& proxy, Layout layout) {
    static int count = 0;
    return RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(proxy.port()),
                         .timeout = 20s,
                         .connect_timeout = 20s,
                         .stall_timeout = 20s,
                         .prefix = "proxy-" + std::to_string(++count),
                         .layout = layout,
                         .expected_entries = 1000,
                         .on_failure = penstock::Deny{}}};
}

/// Waits a moment for more, passes on all there is, or any part of it.
Proxy::Cut any_cuts(std::uint64_t seed) {
    return [random = Random(seed)](std::size_t waiting) mutable -> std::size_t {
        return random.chance(20) ? 0 : random.chance(40) ? waiting : random.log_between(1, waiting);
    };
}

/// Of what waits, so many bytes and then the rest, by turns.
Proxy::Cut cut_at(std::size_t at) {
    return [at, first = false](std::size_t waiting) mutable {
        first = !first;
        return first ? at : waiting;
    };
}

/// A limiter behind the proxy, and one in memory that is asked the same.
template <class Algorithm, class Clock>
class Twins {
public:
    Twins(const Algorithm& algorithm, const RedisStorage& storage, std::uint64_t seed)
        : random_(seed), right_(algorithm, LocalStorage{{.max_keys = 10'000, .seed = 1}}, clock_),
          ours_(algorithm, storage, clock_of()), limit_(right_.peek("", 0).limit) {
        // Scripts that the server does not know yet are asked again later, which would be another order.
        compare(ours_.check("", 1), right_.check("", 1));
        compare(ours_.refund("", 1), right_.refund("", 1));
    }

    /// Any of the things that one can ask.
    void step() {
        const std::string key = any_key();
        const std::uint64_t cost = any_cost();
        switch (random_.below(9)) {
        case 0:
            move_clock();
            break;
        case 1:
            compare(ours_.peek(key, cost), right_.peek(key, cost));
            break;
        case 2:
            compare(ours_.refund(key, cost), right_.refund(key, cost));
            break;
        case 3:
            compare(ours_.charge(key, cost), right_.charge(key, cost));
            break;
        case 4:
            batch();
            break;
        case 5:
            reserve(key, cost);
            break;
        case 6:
        case 7:
            check_without_waiting(key, cost);
            break;
        default:
            compare(ours_.check(key, cost), right_.check(key, cost));
        }
    }

    /// All that was asked without waiting has its answer.
    void settle() {
        CHECK(await([&] {
            return std::all_of(asked_.begin(), asked_.end(), [](const Asked& each) { return each.answered.load(); });
        }));
        for (const Asked& each : asked_) {
            compare(each.ours, each.right);
        }
        CHECK(ours_.storage().stats().losses == 0);
    }

private:
    static constexpr bool exact = std::is_same_v<Clock, ManualClock>;

    struct Asked {
        explicit Asked(const Decision& decision) : right(decision) {}

        Decision right;
        Decision ours{};
        std::atomic<bool> answered{false};
    };

    [[nodiscard]] Clock clock_of() const {
        if constexpr (exact) {
            return clock_;
        } else {
            return {};
        }
    }

    [[nodiscard]] std::string any_key() { return "client " + std::to_string(random_.below(4)); }

    [[nodiscard]] std::uint64_t any_cost() {
        return random_.chance(10) ? random_.one_of({0, limit_, limit_ + 1, 3 * limit_}) : random_.between(1, 4);
    }

    void move_clock() {
        if (random_.chance(90)) {
            clock_.advance(std::chrono::microseconds(random_.log_between(1, 20'000'000)));
        } else {
            clock_.set(clock_.now() / 2);
        }
    }

    void batch() {
        std::vector<std::string> keys(random_.log_between(1, 100));
        std::vector<Check> checks;
        for (std::string& key : keys) {
            key = any_key();
            checks.push_back({.key = key, .cost = any_cost()});
        }
        std::vector<Decision> ours(checks.size());
        std::vector<Decision> right(checks.size());
        ours_.check(checks, ours);
        right_.check(checks, right);
        for (std::size_t i = 0; i < checks.size(); ++i) {
            compare(ours[i], right[i]);
        }
    }

    void reserve(const std::string& key, std::uint64_t cost) {
        if constexpr (penstock::Reservable<Algorithm>) {
            const Reservation ours = ours_.reserve(key, 10s, cost);
            const Reservation right = right_.reserve(key, 10s, cost);
            compare(ours.decision, right.decision);
            CHECK((!exact || ours.wait == right.wait));
        }
    }

    void check_without_waiting(const std::string& key, std::uint64_t cost) {
        Asked& asked = asked_.emplace_back(right_.check(key, cost));
        ours_.async_check(key, cost, [&asked](const Decision& decision) {
            asked.ours = decision;
            asked.answered = true;
        });
    }

    /// On the server's time the waits are others, but not whether there are any; and of several limits that reject, the
    /// one with the longest wait is told.
    void compare(const Decision& ours, Decision right) const {
        if constexpr (!exact) {
            CHECK((ours.retry_after == penstock::never) == (right.retry_after == penstock::never));
            CHECK((ours.retry_after > 0us) == (right.retry_after > 0us));
            right.retry_after = ours.retry_after;
            right.reset_after = ours.reset_after;
            right.limit = ours.allowed ? right.limit : ours.limit;
        }
        CHECK(ours == right);
    }

    const ManualClock clock_;
    Random random_;
    std::deque<Asked> asked_;
    Limiter<Algorithm, LocalStorage, ManualClock> right_;
    Limiter<Algorithm, RedisStorage, Clock> ours_;
    std::uint64_t limit_;
};

/// Runs `test(algorithm, layout)` for each of both; windows and refills are `period` long.
template <class Test>
void for_each_limiter(std::chrono::microseconds period, const Test& test) {
    const TokenBucket bucket{.capacity = 20, .refill = penstock::per(20, period)};
    const FixedWindow fixed{.limit = 30, .window = period};
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        CAPTURE(layout);
        test(bucket, layout);
        test(SlidingWindow{.limit = 20, .window = period}, layout);
        test(fixed, layout);
        test(AllOf{bucket, fixed}, layout);
        test(AllOf{bucket, TokenBucket{.capacity = 40, .refill = penstock::per(20, period)}}, layout);
    }
}

TEST_CASE("segments cut, merged and delayed at random change no decision") {
    Proxy proxy(server().port());
    std::uint64_t seed = 0;
    for_each_limiter(10s, [&]<class Algorithm>(const Algorithm& algorithm, Layout layout) {
        ++seed;
        CAPTURE(seed);
        Twins<Algorithm, ManualClock> twins(algorithm, storage_behind(proxy, layout), seed);
        proxy.cut_by(any_cuts(seed));
        for (int i = 0; i < 300; ++i) {
            twins.step();
        }
        twins.settle();
    });
}

TEST_CASE("segments cut at any byte change no decision") {
    constexpr std::size_t longer_than_any_call = 250;
    Proxy proxy(server().port());
    for_each_limiter(10s, [&]<class Algorithm>(const Algorithm& algorithm, Layout layout) {
        Twins<Algorithm, ManualClock> twins(algorithm, storage_behind(proxy, layout), 20);
        for (std::size_t at = 1; at <= longer_than_any_call; ++at) {
            CAPTURE(at);
            proxy.cut_by(cut_at(at));
            twins.step();
            twins.step();
        }
        twins.settle();
    });
}

TEST_CASE("segments of one byte change no decision") {
    Proxy proxy(server().port());
    for_each_limiter(10s, [&]<class Algorithm>(const Algorithm& algorithm, Layout layout) {
        Twins<Algorithm, ManualClock> twins(algorithm, storage_behind(proxy, layout), 30);
        proxy.cut_by([](std::size_t) -> std::size_t { return 1; });
        for (int i = 0; i < 5; ++i) {
            twins.step();
        }
        twins.settle();
    });
}

TEST_CASE("on the server's time as well") {
    Proxy proxy(server().port());
    std::uint64_t seed = 100;
    // So long that nothing is refilled, and no window ends, while the test runs.
    for_each_limiter(400 * 24h, [&]<class Algorithm>(const Algorithm& algorithm, Layout layout) {
        ++seed;
        CAPTURE(seed);
        Twins<Algorithm, ServerClock> twins(algorithm, storage_behind(proxy, layout), seed);
        proxy.cut_by(any_cuts(seed));
        for (int i = 0; i < 200; ++i) {
            twins.step();
        }
        twins.settle();
    });
}

/// One caller's units: each answer leaves one less than the one before, and one less again for each call that failed
/// and that the server has got nevertheless, be it later.
class Units {
public:
    explicit Units(std::uint64_t limit) : limit_(limit), left_(limit) {}

    void note(const Decision& decision) {
        if (decision.source != Source::store) {
            ++failed_;
            ++failures;
            return;
        }
        const std::uint64_t gone = left_ - decision.remaining;
        wrong += decision.allowed && decision.limit == limit_ && gone >= 1 && gone <= 1 + failed_ ? 0 : 1;
        left_ = decision.remaining;
        failed_ -= (std::min)(gone - 1, failed_);
        ++answers;
    }

    std::atomic<std::uint64_t> answers{0};
    std::atomic<std::uint64_t> failures{0};
    std::atomic<std::uint64_t> wrong{0};

private:
    std::uint64_t limit_;
    std::uint64_t left_;
    std::uint64_t failed_ = 0;
};

/// Of several limits, the one that counts is told by the answer itself.
AllOf<FixedWindow, FixedWindow> limit_of(std::uint64_t units) {
    return AllOf{FixedWindow{.limit = units, .window = 400 * 24h},
                 FixedWindow{.limit = 2 * units, .window = 400 * 24h}};
}

/// Callers of all kinds, each with a key and a limit of its own, while the test does what it likes.
template <class AnyLimiter>
class Callers {
public:
    explicit Callers(AnyLimiter& limiter) : limiter_(limiter) {
        for (std::size_t i = 0; i < count; ++i) {
            units_.emplace_back((i + 1) * 10'000'000);
            threads_.emplace_back([this, i] { ask(i); });
        }
    }

    Callers(const Callers&) = delete;
    Callers& operator=(const Callers&) = delete;

    ~Callers() {
        stopping_ = true;
        for (std::thread& thread : threads_) {
            thread.join();
        }
        for (const Units& each : units_) {
            CHECK(each.wrong == 0);
        }
    }

    /// How many answers the one has who has the fewest.
    [[nodiscard]] std::uint64_t answers() const {
        std::uint64_t least = ~std::uint64_t{0};
        for (const Units& each : units_) {
            least = (std::min)(least, each.answers.load());
        }
        return least;
    }

    [[nodiscard]] std::uint64_t failures() const {
        std::uint64_t all = 0;
        for (const Units& each : units_) {
            all += each.failures;
        }
        return all;
    }

private:
    static constexpr std::size_t count = 6;

    void ask(std::size_t caller) {
        const std::string key = "caller " + std::to_string(caller);
        const auto plan = penstock::plan(limit_of((caller + 1) * 10'000'000));
        while (!stopping_) {
            switch (caller % 3) {
            case 0:
                units_[caller].note(limiter_.check(key, plan));
                break;
            case 1:
                ask_a_batch(caller, key, plan);
                break;
            default:
                ask_without_waiting(caller, key, plan);
            }
        }
    }

    template <class AnyPlan>
    void ask_a_batch(std::size_t caller, const std::string& key, const AnyPlan& plan) {
        const std::vector<Check> checks(20, Check{.key = key});
        std::vector<Decision> decisions(checks.size());
        limiter_.check(plan, checks, decisions);
        for (const Decision& decision : decisions) {
            units_[caller].note(decision);
        }
    }

    template <class AnyPlan>
    void ask_without_waiting(std::size_t caller, const std::string& key, const AnyPlan& plan) {
        constexpr int at_once = 20;
        std::atomic<int> answered{0};
        for (int i = 0; i < at_once; ++i) {
            limiter_.async_check(key, plan, 1, [this, caller, &answered](const Decision& decision) {
                units_[caller].note(decision);
                ++answered;
            });
        }
        CHECK(await([&] { return answered == at_once; }, 60s));
    }

    AnyLimiter& limiter_;
    std::atomic<bool> stopping_{false};
    std::deque<Units> units_;
    std::vector<std::thread> threads_;
};

TEST_CASE("connections cut in the middle of answers give nobody another's") {
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        CAPTURE(layout);
        Proxy proxy(server().port());
        Limiter limiter{limit_of(1), storage_behind(proxy, layout)};
        const Callers callers(limiter);
        for (std::uint64_t cut = 0; cut < 30; ++cut) {
            const std::uint64_t before = callers.answers();
            CHECK(await([&] { return callers.answers() > before + 5; }));
            proxy.cut_by(any_cuts(cut));
            proxy.cut_connections();
        }
        CHECK(callers.failures() > 0);
        CHECK(limiter.storage().stats().losses >= 10);
    }
}

}  // namespace
