// SPDX-License-Identifier: MIT
// Through a Limiter with LocalStorage, several clients at once: every decision equals that of exact arithmetic, and no
// client is forgotten before it is fresh again under every plan that it was used with.
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
#include <string_view>
#include <vector>

namespace {

using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using std::chrono::microseconds;
using trace::Random;

/// As many as the smallest table has slots, so that records past their time are reclaimed, and no others.
const std::array<std::string, 16>& keys() {
    using namespace std::string_literals;
    static const std::array<std::string, 16> all{"",
                                                 "\0"s,
                                                 "\0\0"s,
                                                 "a",
                                                 "b",
                                                 "{b}",
                                                 "user:42",
                                                 "user:42 ",
                                                 "\xff",
                                                 "\xc3\xa4",
                                                 "0",
                                                 "00000000",
                                                 "a\nb",
                                                 "%s",
                                                 std::string(500, 'k'),
                                                 std::string(501, 'k')};
    return all;
}

const std::array<std::uint64_t, 16>& phases() {
    static const std::array<std::uint64_t, 16> all = [] {
        std::array<std::uint64_t, 16> phase{};
        std::transform(keys().begin(), keys().end(), phase.begin(), penstock::stagger_hash);
        return phase;
    }();
    return all;
}

template <class Model, class State>
std::uint64_t wait_until_fresh(const Model& model, State state, std::uint64_t now, std::uint64_t phase) {
    return static_cast<std::uint64_t>(peek(model, state, now, 0, phase).reset_after);
}

template <class... Parts, class State>
std::uint64_t wait_until_fresh(const reference::AllOf<Parts...>& all,
                               State state,
                               std::uint64_t now,
                               std::uint64_t phase) {
    const auto waits =
        all.each(state, [&](const auto& part, const auto& own) { return wait_until_fresh(part, own, now, phase); });
    return *std::max_element(waits.begin(), waits.end());
}

/// What a client may be remembered as.
template <class Twin>
struct Memory {
    typename Twin::Model::State state{};
    std::vector<bool> plans;     // those with which it was written
    std::uint64_t fresh_at = 0;  // under the slowest of them
    bool expired = false;        // that was once the time since it was written

    friend bool operator==(const Memory&, const Memory&) = default;
};

/// One client. Whether its record was reclaimed once it was as good as fresh does not show at once, so both are kept
/// in mind until an answer tells.
template <class Algorithm>
class Client {
public:
    using Twin = trace::Twin<Algorithm>;
    using Twins = std::vector<Twin>;

    void forget() { memories_ = {fresh()}; }

    void see(std::uint64_t now) {
        for (Memory<Twin>& memory : memories_) {
            memory.expired = memory.expired || memory.fresh_at <= now;
        }
    }

    void may_be_forgotten() {
        if (std::any_of(memories_.begin(), memories_.end(), [](const auto& memory) { return memory.expired; })) {
            add(fresh(), memories_);
        }
    }

    /// `operation(model, state)` is what was done. False if no memory gives that answer.
    template <class Operation>
    bool agrees(const Twins& twins,
                std::size_t plan,
                std::uint64_t now,
                std::uint64_t phase,
                const Decision& answer,
                Operation operation) {
        std::vector<Memory<Twin>> agreeing;
        for (Memory<Twin> memory : memories_) {
            const auto before = memory.state;
            expected_ = operation(twins[plan].model, memory.state);
            if (trace::same(answer, expected_)) {
                if (memory.state != before) {
                    written(memory, twins, plan, now, phase);
                }
                add(memory, agreeing);
            }
        }
        memories_.swap(agreeing);
        return !memories_.empty();
    }

    const reference::Decision& expected() const { return expected_; }

private:
    static Memory<Twin> fresh() { return {}; }

    static void add(const Memory<Twin>& memory, std::vector<Memory<Twin>>& memories) {
        if (std::find(memories.begin(), memories.end(), memory) == memories.end()) {
            memories.push_back(memory);
        }
    }

    static void written(
        Memory<Twin>& memory, const Twins& twins, std::size_t plan, std::uint64_t now, std::uint64_t phase) {
        memory.plans.resize(twins.size());
        memory.plans[plan] = true;
        memory.fresh_at = 0;
        for (std::size_t i = 0; i < twins.size(); ++i) {
            if (memory.plans[i]) {
                const std::uint64_t wait = wait_until_fresh(twins[i].model, memory.state, now, phase);
                memory.fresh_at = (std::max)(memory.fresh_at, now + wait);
            }
        }
        memory.expired = memory.fresh_at <= now;
    }

    std::vector<Memory<Twin>> memories_{fresh()};
    reference::Decision expected_;
};

template <class Algorithm>
class Trace {
public:
    Trace(std::uint64_t test, std::uint64_t number)
        : number_(number), random_(trace::random_of(test, number)), twins_(trace::random_twins<Algorithm>(random_)),
          limiter_(trace::algorithm_of(twins_[0].parameters),
                   penstock::LocalStorage{{.max_keys = 1, .seed = 1 + random_.bits() / 2}},
                   clock_),
          now_(trace::random_start(random_, twins_[0].scale())) {}

    std::uint64_t run() {
        REQUIRE(limiter_.storage().slots() == keys().size());
        const std::uint64_t steps = random_.between(50, 1'000);
        while (step_ < steps) {
            move_clock();
            choose_plan();
            if (random_.chance(10)) {
                batch();
            } else {
                single();
            }
        }
        CHECK(limiter_.storage().evictions() == 0);
        return step_;
    }

private:
    using Twin = trace::Twin<Algorithm>;
    using Limiter = penstock::Limiter<Algorithm, penstock::LocalStorage, penstock::ManualClock>;

    /// Clients come and go: a few at a time, all of them in the end.
    std::size_t choose_key() {
        if (random_.chance(5)) {
            favourite_ = random_.bits();
        }
        return (random_.chance(70) ? favourite_ + random_.bits() % 3 : random_.bits()) % keys().size();
    }

    void move_clock() {
        now_ = trace::next_time(random_, now_, {last_.retry_after, last_.reset_after}, twins_[plan_].scale());
        const bool outside = random_.chance(1);
        if (outside && now_ == 0) {
            clock_.set(-trace::micros(random_.log_between(1, trace::max_time)));
        } else if (outside && now_ == trace::max_time) {
            clock_.set(trace::micros(now_ + random_.log_between(1, trace::max_time)));
        } else {
            clock_.set(trace::micros(now_));
        }
        for (auto& client : clients_) {
            client.see(now_);
        }
    }

    /// The plan of the call, or the limiter's own.
    void choose_plan() {
        if (random_.chance(15)) {
            plan_ = random_.bits() % twins_.size();
        }
        if (random_.chance(2)) {
            own_plan_ = random_.bits() % twins_.size();
            limiter_.configure(trace::algorithm_of(twins_[own_plan_].parameters));
        }
        use_own_plan_ = random_.chance(30);
        used_plan_ = use_own_plan_ ? own_plan_ : plan_;
    }

    std::uint64_t choose_cost(std::size_t key) {
        const std::uint64_t remaining = limiter_.peek(keys()[key], twins_[used_plan_].plan, 0).remaining;
        return trace::random_cost(random_, remaining, twins_[used_plan_].limit());
    }

    template <class Operation>
    void compare(std::size_t key, std::uint64_t cost, const char* what, const Decision& answer, Operation operation) {
        ++step_;
        last_ = answer;
        clients_[key].may_be_forgotten();
        const std::uint64_t phase = phases()[key];
        const bool agrees =
            clients_[key].agrees(twins_, used_plan_, now_, phase, answer, [&](const auto& model, auto& state) {
                return operation(model, state, now_, cost, phase);
            });
        if (!agrees) {
            fail(key, cost, what, answer);
        }
    }

    void compare_check(std::size_t key, std::uint64_t cost, const char* what, const Decision& answer) {
        compare(key, cost, what, answer, [](const auto& model, auto& state, const auto&... rest) {
            return check(model, state, rest...);
        });
    }

    void single() {
        const std::size_t key = choose_key();
        const std::uint64_t cost = choose_cost(key);
        const std::uint64_t dice = random_.bits() % 100;
        if (dice < 55) {
            compare_check(key, cost, "check", do_check(keys()[key], cost));
        } else if (dice < 65) {
            compare(
                key, cost, "peek", do_peek(keys()[key], cost), [](const auto& model, auto& state, const auto&... rest) {
                    return peek(model, state, rest...);
                });
        } else if (dice < 75) {
            compare(key,
                    cost,
                    "refund",
                    do_refund(keys()[key], cost),
                    [](const auto& model, auto& state, const auto&... rest) { return refund(model, state, rest...); });
        } else if (dice < 85) {
            compare(key,
                    cost,
                    "charge",
                    do_charge(keys()[key], cost),
                    [](const auto& model, auto& state, const auto&... rest) { return charge(model, state, rest...); });
        } else if (dice < 88) {
            reset(key);
        } else {
            reserve_or_check(key, cost);
        }
    }

    void reset(std::size_t key) {
        ++step_;
        limiter_.reset(keys()[key]);
        clients_[key].forget();
    }

    Decision do_check(std::string_view key, std::uint64_t cost) {
        return use_own_plan_ ? limiter_.check(key, cost) : limiter_.check(key, twins_[plan_].plan, cost);
    }

    Decision do_peek(std::string_view key, std::uint64_t cost) {
        return use_own_plan_ ? limiter_.peek(key, cost) : limiter_.peek(key, twins_[plan_].plan, cost);
    }

    Decision do_refund(std::string_view key, std::uint64_t cost) {
        return use_own_plan_ ? limiter_.refund(key, cost) : limiter_.refund(key, twins_[plan_].plan, cost);
    }

    Decision do_charge(std::string_view key, std::uint64_t cost) {
        return use_own_plan_ ? limiter_.charge(key, cost) : limiter_.charge(key, twins_[plan_].plan, cost);
    }

    void reserve_or_check(std::size_t key, std::uint64_t cost) {
        if constexpr (trace::can_reserve<Algorithm>) {
            const microseconds max_wait = random_.chance(50) ? penstock::never : last_.reset_after / 2;
            const penstock::Reservation answer =
                use_own_plan_ ? limiter_.reserve(keys()[key], max_wait, cost)
                              : limiter_.reserve(keys()[key], twins_[plan_].plan, max_wait, cost);
            compare(key, cost, "reserve", answer.decision, [&](const auto& model, auto& state, const auto&... rest) {
                const auto reservation = reserve(model, state, rest..., max_wait.count());
                return reservation.wait == answer.wait.count() ? reservation.decision : reference::Decision{};
            });
        } else {
            compare_check(key, cost, "check", do_check(keys()[key], cost));
        }
    }

    /// In order, so that a client's later entries see what its earlier ones took.
    void batch() {
        std::vector<std::size_t> chosen;
        std::vector<penstock::Check> checks;
        for (std::uint64_t i = random_.log_between(0, 100); i > 0; --i) {
            chosen.push_back(choose_key());
            checks.push_back({.key = keys()[chosen.back()], .cost = choose_cost(chosen.back())});
        }
        const std::size_t room = random_.chance(90) ? checks.size() : random_.bits() % (checks.size() + 1);
        std::vector<Decision> decisions(room);
        if (use_own_plan_) {
            limiter_.check(checks, decisions);
        } else {
            limiter_.check(twins_[plan_].plan, checks, decisions);
        }
        for (std::size_t i = 0; i < room; ++i) {
            compare_check(chosen[i], checks[i].cost, "check in a batch", decisions[i]);
        }
    }

    void fail(std::size_t key, std::uint64_t cost, const char* what, const Decision& answer) const {
        std::ostringstream out;
        out << "the answers differ\n  PENSTOCK_SEED=" << trace::seed_offset() << ", trace " << number_ << ", step "
            << step_;
        for (std::size_t i = 0; i < twins_.size(); ++i) {
            out << "\n  plan " << i << ": ";
            trace::describe(out, twins_[i].parameters);
        }
        out << "\n  key " << key << " at " << now_ << " us: " << what << " cost " << cost << " with plan " << used_plan_
            << "\n  ours:  " << answer << "\n  right: " << clients_[key].expected();
        FAIL(out.str());
    }

    std::uint64_t number_;
    Random random_;
    std::vector<Twin> twins_;
    penstock::ManualClock clock_;
    Limiter limiter_;
    std::uint64_t now_;
    std::uint64_t step_ = 0;
    std::array<Client<Algorithm>, 16> clients_;
    Decision last_;
    std::uint64_t favourite_ = 0;
    std::size_t plan_ = 0;
    std::size_t own_plan_ = 0;
    std::size_t used_plan_ = 0;
    bool use_own_plan_ = false;
};

}  // namespace

TEST_CASE_TEMPLATE("a limiter's clients are decided as exact arithmetic does, and not forgotten before their time",
                   Algorithm,
                   TokenBucket,
                   SlidingWindow,
                   FixedWindow,
                   AllOf<TokenBucket, FixedWindow>,
                   AllOf<SlidingWindow, TokenBucket>,
                   AllOf<TokenBucket, TokenBucket>,
                   AllOf<SlidingWindow, FixedWindow, TokenBucket>) {
    constexpr std::uint64_t algorithms = 7;
    const std::uint64_t steps = trace::step_count(1'000'000) / algorithms;
    std::uint64_t done = 0;
    for (std::uint64_t number = 0; done < steps; ++number) {
        done += Trace<Algorithm>(20, number).run();
    }
}
