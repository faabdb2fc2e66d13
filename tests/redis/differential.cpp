// SPDX-License-Identifier: MIT
// The scripts on a real server decide as the C++ steps do, field by field, over random traces.
#include <penstock/redis/script.hpp>

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>

#include "../support/print.hpp"
#include "../support/random_trace.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Micros;
using penstock::Op;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using penstock::redis::Layout;
using penstock::redis::Scripts;
using penstock::redis::Time;
using std::chrono::microseconds;
using support::RedisClient;
using support::Reply;
using trace::Random;

support::RedisServer& server() {
    static support::RedisServer shared;
    return shared;
}

struct Step {
    Op op = Op::check;
    std::size_t plan = 0;
    Micros now = 0;
    std::uint64_t cost = 0;
    microseconds max_wait{0};
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    constexpr std::array<const char*, 6> names{"check", "peek", "refund", "charge", "reserve", "reset"};
    return out << "at " << step.now << " us " << names[static_cast<std::size_t>(step.op)] << " cost " << step.cost
               << " with plan " << step.plan << ", max_wait " << step.max_wait.count() << " us";
}

template <class Algorithm>
Op random_op(Random& random) {
    const std::uint64_t dice = random.bits() % 100;
    if (dice < 60) {
        return Op::check;
    } else if (dice < 68) {
        return Op::peek;
    } else if (dice < 78) {
        return Op::refund;
    } else if (dice < 88) {
        return Op::charge;
    } else if (dice < 89) {
        return Op::reset;
    }
    return trace::can_reserve<Algorithm> ? Op::reserve : Op::check;
}

/// What the C++ step answers: as LocalStorage has it, the wait of a reservation stands in retry_after.
template <class Algorithm>
Decision answer(typename Algorithm::State& state,
                const penstock::Plan<Algorithm>& plan,
                const Step& step,
                Micros phase) {
    switch (step.op) {
    case Op::refund:
        return Algorithm::refund(state, plan, step.now, step.cost, phase);
    case Op::charge:
        return Algorithm::charge(state, plan, step.now, step.cost, phase);
    case Op::reset:
        state = {};
        return {};
    case Op::peek: {
        auto copy = state;
        return Algorithm::step(copy, plan, step.now, step.cost, phase);
    }
    case Op::reserve:
        if constexpr (trace::can_reserve<Algorithm>) {
            auto reservation = Algorithm::reserve(state, plan, step.now, step.cost, phase, step.max_wait);
            if (reservation.decision.allowed) {
                reservation.decision.retry_after = reservation.wait;
            }
            return reservation.decision;
        }
        break;
    case Op::check:
        break;
    }
    return Algorithm::step(state, plan, step.now, step.cost, phase);
}

/// One client through its life in C++, while the same calls are queued for the server.
template <class Algorithm>
class Trace {
public:
    Trace(std::uint64_t test, std::uint64_t number)
        : number_(number), random_(trace::random_of(test, number)), twins_(trace::random_twins<Algorithm>(random_)),
          phase_(trace::random_phase(random_)), now_(trace::random_start(random_, twins_[0].scale())) {}

    /// Returns the number of steps.
    std::size_t queue(RedisClient& client, const Scripts<Algorithm>& scripts, Layout layout) {
        const std::uint64_t steps = random_.between(10, 200);
        for (std::uint64_t i = 0; i < steps; ++i) {
            add(next_step(), client, scripts, layout);
        }
        add({Op::charge, plan_, now_, 1, {}}, client, scripts, layout);
        client.add({"PTTL", key()});
        return history_.size();
    }

    void compare(RedisClient& client) {
        for (std::size_t i = 0; i < history_.size(); ++i) {
            compare(i, client.receive());
        }
        check_lifetime(client.receive().integer);
    }

private:
    using Twin = trace::Twin<Algorithm>;

    std::string key() const { return "t:{" + std::to_string(number_) + "}"; }

    Step next_step() {
        if (random_.chance(30)) {
            plan_ = random_.bits() % twins_.size();
        }
        now_ = trace::next_time(random_, now_, waits_, twins_[plan_].scale());
        Step step{random_op<Algorithm>(random_), plan_, now_, 0, microseconds(0)};
        auto copy = state_;
        const std::uint64_t remaining = Algorithm::step(copy, twins_[plan_].plan, now_, 0, phase_).remaining;
        step.cost = trace::random_cost(random_, remaining, twins_[plan_].limit());
        step.max_wait = step.op == Op::reserve ? random_max_wait(step) : microseconds(0);
        return step;
    }

    microseconds random_max_wait(Step asking) {
        asking.max_wait = penstock::never;
        auto copy = state_;
        const microseconds wait = answer<Algorithm>(copy, twins_[plan_].plan, asking, phase_).retry_after;
        const std::array<microseconds, 6> choices{wait,
                                                  wait - microseconds(1),
                                                  microseconds(0),
                                                  penstock::never,
                                                  (microseconds::min)(),
                                                  trace::micros(random_.log_between(1, trace::max_time))};
        return choices[random_.bits() % choices.size()];
    }

    void add(const Step& step, RedisClient& client, const Scripts<Algorithm>& scripts, Layout layout) {
        const auto& plan = twins_[step.plan].plan;
        std::vector<std::string> call{"EVALSHA", scripts.script(step.op).sha1, "1", key()};
        if (layout == Layout::packed) {
            call.emplace_back("0123456789ab");
        }
        scripts.push(step.op, plan, step.now, step.cost, phase_, step.max_wait, [&](std::string_view argument) {
            call.emplace_back(argument);
        });
        client.add(call);
        history_.push_back(step);
        expected_.push_back(answer<Algorithm>(state_, plan, step, phase_));
        waits_ = {expected_.back().retry_after, expected_.back().reset_after};
    }

    void compare(std::size_t index, const Reply& reply) {
        const Step& step = history_[index];
        const std::vector<std::int64_t> numbers = reply.integers();
        const std::uint64_t limit = Scripts<Algorithm>::limit_of(twins_[step.plan].plan);
        Decision ours{};
        if (reply.is(Reply::Kind::error) || !Scripts<Algorithm>::decision(numbers, step.op, limit, ours) ||
            ours != expected_[index]) {
            fail(index, reply, ours);
        }
    }

    void check_lifetime(std::int64_t ttl) const {
        const Micros fresh = Algorithm::fresh_at(state_);
        const std::uint64_t needed = (std::max)(trace::minus(fresh, now_) / 1000, std::uint64_t{3'600'000});
        constexpr std::int64_t since_it_was_written = 60'000;
        INFO("PENSTOCK_SEED=", trace::seed_offset(), ", trace ", number_);
        CHECK(ttl + since_it_was_written >= static_cast<std::int64_t>(needed));
        CHECK(ttl > 0);
    }

    void fail(std::size_t index, const Reply& reply, const Decision& ours) const {
        std::ostringstream out;
        out << "the answers differ\n  PENSTOCK_SEED=" << trace::seed_offset() << ", trace " << number_ << ", step "
            << index << ", phase " << phase_;
        for (std::size_t i = 0; i < twins_.size(); ++i) {
            out << "\n  plan " << i << ": ";
            trace::describe(out, twins_[i].parameters);
        }
        for (std::size_t i = index - (std::min)(index, std::size_t{11}); i <= index; ++i) {
            out << "\n  " << history_[i] << "\n    C++: " << expected_[i];
        }
        out << "\n    Lua: " << ours << ' ' << reply.text;
        for (const std::int64_t number : reply.integers()) {
            out << ' ' << number;
        }
        FAIL(out.str());
    }

    std::uint64_t number_;
    Random random_;
    std::vector<Twin> twins_;
    Micros phase_;
    Micros now_;
    std::size_t plan_ = 0;
    std::array<microseconds, 2> waits_{};
    typename Algorithm::State state_{};
    std::vector<Step> history_;
    std::vector<Decision> expected_;
};

template <class Algorithm>
Scripts<Algorithm> loaded(RedisClient& client, Layout layout, Time time) {
    Scripts<Algorithm> scripts(layout, time);
    for (const Op op : {Op::check, Op::charge}) {
        const Reply reply = client("SCRIPT", "LOAD", scripts.script(op).text);
        REQUIRE_MESSAGE(reply.text == scripts.script(op).sha1, reply.text);
    }
    return scripts;
}

constexpr std::uint64_t tests = 11;

template <class Algorithm>
void compare_steps(std::uint64_t test) {
    RedisClient client(server().port());
    client("FLUSHALL");
    const std::array<Layout, 2> layouts{Layout::packed, Layout::per_key};
    const std::array<Scripts<Algorithm>, 2> scripts{loaded<Algorithm>(client, layouts[0], Time::limiter),
                                                    loaded<Algorithm>(client, layouts[1], Time::limiter)};
    const std::uint64_t steps = trace::step_count(60'000) / tests;
    std::deque<Trace<Algorithm>> in_flight;
    std::uint64_t done = 0;
    for (std::uint64_t number = 0; done < steps; ++number) {
        in_flight.emplace_back(test, number);
        done += in_flight.back().queue(client, scripts[number % 2], layouts[number % 2]);
        if (in_flight.size() == 4 || done >= steps) {
            client.flush();
            for (Trace<Algorithm>& each : in_flight) {
                each.compare(client);
            }
            in_flight.clear();
        }
    }
    CHECK(done >= steps);
    client("FLUSHALL");
}

}  // namespace

TEST_CASE("a token bucket decides on the server as in C++") {
    compare_steps<TokenBucket>(11);
}

TEST_CASE("a sliding window decides on the server as in C++") {
    compare_steps<SlidingWindow>(12);
}

TEST_CASE("a fixed window decides on the server as in C++") {
    compare_steps<FixedWindow>(13);
}

TEST_CASE("two limits in one script decide as in C++") {
    SUBCASE("a bucket and a fixed window") {
        compare_steps<AllOf<TokenBucket, FixedWindow>>(14);
    }
    SUBCASE("a sliding window and a bucket") {
        compare_steps<AllOf<SlidingWindow, TokenBucket>>(15);
    }
    SUBCASE("two buckets, which also reserve") {
        compare_steps<AllOf<TokenBucket, TokenBucket>>(16);
    }
    SUBCASE("two sliding windows") {
        compare_steps<AllOf<SlidingWindow, SlidingWindow>>(17);
    }
}

TEST_CASE("three limits in one script decide as in C++") {
    SUBCASE("one of each") {
        compare_steps<AllOf<SlidingWindow, FixedWindow, TokenBucket>>(18);
    }
    SUBCASE("three buckets, which also reserve") {
        compare_steps<AllOf<TokenBucket, TokenBucket, TokenBucket>>(19);
    }
}

TEST_CASE("the most limits in one script decide as in C++") {
    SUBCASE("five of all kinds") {
        compare_steps<AllOf<SlidingWindow, FixedWindow, TokenBucket, SlidingWindow, TokenBucket>>(20);
    }
    SUBCASE("five sliding windows") {
        compare_steps<AllOf<SlidingWindow, SlidingWindow, SlidingWindow, SlidingWindow, SlidingWindow>>(21);
    }
}
