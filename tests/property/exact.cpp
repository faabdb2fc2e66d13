// SPDX-License-Identifier: MIT
// Every field of every decision equals that of exact arithmetic, over random traces.
#include "../support/print.hpp"
#include "../support/random_trace.hpp"
#include "../support/rational_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using penstock::AllOf;
using penstock::FixedWindow;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using std::chrono::microseconds;
using trace::Random;

enum class Operation { check, peek, refund, charge, reserve };

constexpr std::array<const char*, 5> operation_names{"check", "peek", "refund", "charge", "reserve"};

struct Step {
    Operation operation = Operation::check;
    std::size_t plan = 0;
    std::uint64_t now = 0;
    std::uint64_t cost = 0;
    microseconds max_wait{0};
};

std::ostream& operator<<(std::ostream& out, const Step& step) {
    out << "at " << step.now << " us " << operation_names[static_cast<std::size_t>(step.operation)] << " cost "
        << step.cost << " with plan " << step.plan;
    if (step.operation == Operation::reserve) {
        out << ", max_wait " << step.max_wait.count() << " us";
    }
    return out;
}

template <class Algorithm>
Operation random_operation(Random& random) {
    const std::uint64_t dice = random.bits() % 100;
    if (dice < 62) {
        return Operation::check;
    } else if (dice < 70) {
        return Operation::peek;
    } else if (dice < 80) {
        return Operation::refund;
    } else if (dice < 90) {
        return Operation::charge;
    }
    return trace::can_reserve<Algorithm> ? Operation::reserve : Operation::check;
}

/// One client through its life, in the library and in the reference.
template <class Algorithm>
class Trace {
public:
    Trace(std::uint64_t test, std::uint64_t number)
        : number_(number), random_(trace::random_of(test, number)), twins_(trace::random_twins<Algorithm>(random_)),
          phase_(trace::random_phase(random_)), now_(trace::random_start(random_, twins_[0].scale())) {}

    /// Returns the number of steps taken.
    std::uint64_t run() {
        const std::uint64_t steps = random_.between(10, 300);
        for (std::uint64_t i = 0; i < steps; ++i) {
            const Step step = next_step();
            history_.push_back(step);
            compare(step);
        }
        return steps;
    }

private:
    using Twin = trace::Twin<Algorithm>;
    using State = typename Algorithm::State;
    using Bytes = std::array<unsigned char, sizeof(State)>;

    Step next_step() {
        if (random_.chance(15)) {
            plan_ = random_.bits() % twins_.size();
        }
        now_ = trace::next_time(random_, now_, waits_, twins_[plan_].scale());
        Step step{random_operation<Algorithm>(random_), plan_, now_, 0, microseconds(0)};
        step.cost = trace::random_cost(random_, remaining(), twins_[plan_].limit());
        step.max_wait = random_max_wait(step);
        return step;
    }

    std::uint64_t remaining() const {
        State copy = state_;
        return Algorithm::step(copy, twins_[plan_].plan, now_, 0, phase_).remaining;
    }

    microseconds random_max_wait(const Step& step) {
        if (step.operation != Operation::reserve) {
            return microseconds(0);
        }
        Step asking = step;
        asking.max_wait = penstock::never;
        State copy = state_;
        const microseconds wait = ours(asking, copy).wait;
        const std::array<microseconds, 6> choices{wait,
                                                  wait - microseconds(1),
                                                  microseconds(0),
                                                  penstock::never,
                                                  (microseconds::min)(),
                                                  trace::micros(random_.log_between(1, trace::max_time))};
        return choices[random_.bits() % choices.size()];
    }

    penstock::Reservation ours(const Step& step, State& state) const {
        const auto& plan = twins_[step.plan].plan;
        if (step.operation == Operation::refund) {
            return {Algorithm::refund(state, plan, step.now, step.cost, phase_), microseconds(0)};
        } else if (step.operation == Operation::charge) {
            return {Algorithm::charge(state, plan, step.now, step.cost, phase_), microseconds(0)};
        } else if (step.operation == Operation::peek) {
            State copy = state;
            return {Algorithm::step(copy, plan, step.now, step.cost, phase_), microseconds(0)};
        }
        if constexpr (trace::can_reserve<Algorithm>) {
            if (step.operation == Operation::reserve) {
                return Algorithm::reserve(state, plan, step.now, step.cost, phase_, step.max_wait);
            }
        }
        return {Algorithm::step(state, plan, step.now, step.cost, phase_), microseconds(0)};
    }

    reference::Reservation right(const Step& step) {
        const auto& model = twins_[step.plan].model;
        if (step.operation == Operation::refund) {
            return {refund(model, model_state_, step.now, step.cost, phase_), 0};
        } else if (step.operation == Operation::charge) {
            return {charge(model, model_state_, step.now, step.cost, phase_), 0};
        } else if (step.operation == Operation::peek) {
            return {peek(model, model_state_, step.now, step.cost, phase_), 0};
        }
        if constexpr (trace::can_reserve<Algorithm>) {
            if (step.operation == Operation::reserve) {
                return reserve(model, model_state_, step.now, step.cost, phase_, step.max_wait.count());
            }
        }
        return {check(model, model_state_, step.now, step.cost, phase_), 0};
    }

    void compare(const Step& step) {
        const auto model_before = model_state_;
        const Bytes before = bytes();
        const penstock::Reservation answer = ours(step, state_);
        const reference::Reservation expected = right(step);
        if (!trace::same(answer, expected)) {
            fail(step, model_before, answer, expected, "the answers differ");
        }
        if (must_change_nothing(step, answer) && bytes() != before) {
            fail(step, model_before, answer, expected, "the state was written");
        }
        waits_ = {answer.decision.retry_after, answer.decision.reset_after};
    }

    static bool must_change_nothing(const Step& step, const penstock::Reservation& answer) {
        return step.cost == 0 || step.operation == Operation::peek ||
               (step.operation != Operation::charge && !answer.decision.allowed);
    }

    Bytes bytes() const {
        Bytes copy;
        std::memcpy(copy.data(), &state_, sizeof state_);
        return copy;
    }

    template <class ModelState>
    void fail(const Step& step,
              const ModelState& before,
              const penstock::Reservation& answer,
              const reference::Reservation& expected,
              const char* what) const {
        std::ostringstream out;
        out << what << "\n  PENSTOCK_SEED=" << trace::seed_offset() << ", trace " << number_ << ", step "
            << history_.size() << ", phase " << phase_;
        for (std::size_t i = 0; i < twins_.size(); ++i) {
            out << "\n  plan " << i << ": ";
            trace::describe(out, twins_[i].parameters);
        }
        const std::size_t shown = (std::min)(history_.size(), std::size_t{12});
        for (std::size_t i = history_.size() - shown; i + 1 < history_.size(); ++i) {
            out << "\n  before: " << history_[i];
        }
        out << "\n  step:   " << step << "\n  state before, as it should be: ";
        print_state(out, before) << "\n  state after, as it should be:  ";
        print_state(out, model_state_) << "\n  ours:  " << answer << "\n  right: " << expected;
        FAIL(out.str());
    }

    std::uint64_t number_;
    Random random_;
    std::vector<Twin> twins_;
    std::uint64_t phase_;
    std::uint64_t now_;
    std::size_t plan_ = 0;
    std::array<microseconds, 2> waits_{};
    State state_{};
    typename Twin::Model::State model_state_{};
    std::vector<Step> history_;
};

constexpr std::uint64_t tests = 9;

template <class Algorithm>
void compare_steps(std::uint64_t test) {
    const std::uint64_t steps = trace::step_count(2'700'000) / tests;
    std::uint64_t done = 0;
    for (std::uint64_t number = 0; done < steps; ++number) {
        done += Trace<Algorithm>(test, number).run();
    }
    CHECK(done >= steps);
}

}  // namespace

TEST_CASE("a token bucket decides as exact arithmetic does") {
    compare_steps<TokenBucket>(1);
}

TEST_CASE("a sliding window decides as exact arithmetic does") {
    compare_steps<SlidingWindow>(2);
}

TEST_CASE("a fixed window decides as exact arithmetic does") {
    compare_steps<FixedWindow>(3);
}

TEST_CASE("two limits in one step decide as exact arithmetic does") {
    SUBCASE("a bucket and a fixed window") {
        compare_steps<AllOf<TokenBucket, FixedWindow>>(4);
    }
    SUBCASE("a sliding window and a bucket") {
        compare_steps<AllOf<SlidingWindow, TokenBucket>>(5);
    }
    SUBCASE("two fixed windows") {
        compare_steps<AllOf<FixedWindow, FixedWindow>>(6);
    }
    SUBCASE("two buckets, which also reserve") {
        compare_steps<AllOf<TokenBucket, TokenBucket>>(7);
    }
}

TEST_CASE("three limits in one step decide as exact arithmetic does") {
    SUBCASE("one of each") {
        compare_steps<AllOf<SlidingWindow, FixedWindow, TokenBucket>>(8);
    }
    SUBCASE("three buckets, which also reserve") {
        compare_steps<AllOf<TokenBucket, TokenBucket, TokenBucket>>(9);
    }
}

TEST_CASE("debts that are carried over to windows of other lengths do not wrap") {
    // At the end of a window what the one before it holds weighs next to nothing, so that both can be full of debt; on
    // a grid that begins there it weighs in full.
    const std::uint64_t length = trace::max_window;
    const std::uint64_t phase = length - 1;
    const auto plan = [](std::uint64_t window, penstock::Align align) {
        return penstock::plan(
            SlidingWindow{.limit = trace::max_limit, .window = trace::micros(window), .align = align});
    };
    const auto longest = plan(length, penstock::Align::epoch);
    const auto other = plan(length - 2, penstock::Align::staggered);
    const std::uint64_t end_of_second = 2 * length - 1;
    const std::uint64_t end_of_third = phase + 3 * (length - 2) - 1;

    SlidingWindow::State state{};
    const auto charge = [&](const auto& its, std::uint64_t now) {
        return SlidingWindow::charge(state, its, now, trace::max_cost, phase);
    };
    CHECK_FALSE(charge(longest, 0).allowed);
    CHECK_FALSE(charge(longest, end_of_second).allowed);
    CHECK_FALSE(charge(other, end_of_second).allowed);
    CHECK_FALSE(charge(other, end_of_third).allowed);
    CHECK_FALSE(charge(longest, end_of_third).allowed);
    CHECK(SlidingWindow::refund(state, longest, end_of_third, trace::max_limit, phase).remaining == 0);
    CHECK_FALSE(SlidingWindow::step(state, longest, end_of_third, 1, phase).allowed);
}
