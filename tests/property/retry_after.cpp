// SPDX-License-Identifier: MIT
// retry_after and reset_after are the first microsecond at which what they promise holds.
#include "../support/print.hpp"
#include "../support/random_trace.hpp"

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
using trace::Random;

// An algorithm as its parts, so that a part's own full limit can be looked at: a single algorithm has one.

template <class Algorithm>
std::tuple<penstock::Plan<Algorithm>> part_plans(const Algorithm& algorithm) {
    return {penstock::plan(algorithm)};
}

template <class... Parts>
std::tuple<penstock::Plan<Parts>...> part_plans(const std::tuple<Parts...>& parts) {
    return std::apply([](const auto&... part) { return std::tuple(penstock::plan(part)...); }, parts);
}

template <class Plan>
struct AlgorithmOf;
template <class Algorithm>
struct AlgorithmOf<penstock::Plan<Algorithm>> {
    using Type = Algorithm;
};

struct Check {
    template <class Algorithm, class... Rest>
    Decision operator()(std::type_identity<Algorithm>, Rest&&... rest) const {
        return Algorithm::step(std::forward<Rest>(rest)...);
    }
};

struct Refund {
    template <class Algorithm, class... Rest>
    Decision operator()(std::type_identity<Algorithm>, Rest&&... rest) const {
        return Algorithm::refund(std::forward<Rest>(rest)...);
    }
};

struct Charge {
    template <class Algorithm, class... Rest>
    Decision operator()(std::type_identity<Algorithm>, Rest&&... rest) const {
        return Algorithm::charge(std::forward<Rest>(rest)...);
    }
};

/// One client, counted as a whole and once more part by part.
template <class Algorithm>
class Client {
public:
    Client(const trace::ParametersOf<Algorithm>& parameters, std::uint64_t phase)
        : whole_(penstock::plan(trace::algorithm_of(parameters))), parts_(part_plans(parameters)), phase_(phase) {}

    template <class Operation>
    void apply(Operation operation, std::uint64_t now, std::uint64_t cost) {
        const Decision decision = operation(std::type_identity<Algorithm>{}, state_, whole_, now, cost, phase_);
        if (decision.allowed || !std::is_same_v<Operation, Check>) {
            each_part([&](auto algorithm, auto& state, const auto& plan) {
                return operation(algorithm, state, plan, now, cost, phase_);
            });
        }
    }

    Decision peek(std::uint64_t now, std::uint64_t cost) const {
        auto copy = state_;
        return Algorithm::step(copy, whole_, now, cost, phase_);
    }

    auto peek_parts(std::uint64_t now, std::uint64_t cost) const {
        Client copy = *this;
        return copy.each_part([&](auto algorithm, auto& state, const auto& plan) {
            return Check{}(algorithm, state, plan, now, cost, phase_);
        });
    }

    void move_to(const trace::ParametersOf<Algorithm>& parameters) {
        whole_ = penstock::plan(trace::algorithm_of(parameters));
        parts_ = part_plans(parameters);
    }

private:
    using Plans = decltype(part_plans(std::declval<trace::ParametersOf<Algorithm>>()));

    template <class... Plan>
    static std::tuple<typename AlgorithmOf<Plan>::Type::State...> states_of(const std::tuple<Plan...>&);

    template <class Visit>
    auto each_part(Visit visit) {
        return each_part(visit, std::make_index_sequence<std::tuple_size_v<Plans>>{});
    }

    template <class Visit, std::size_t... I>
    auto each_part(Visit& visit, std::index_sequence<I...>) {
        return std::array{visit(std::type_identity<typename AlgorithmOf<std::tuple_element_t<I, Plans>>::Type>{},
                                std::get<I>(states_),
                                std::get<I>(parts_))...};
    }

    penstock::Plan<Algorithm> whole_;
    typename Algorithm::State state_{};
    Plans parts_;
    decltype(states_of(std::declval<Plans>())) states_{};
    std::uint64_t phase_;
};

/// The part whose limit and times an answer tells.
template <std::size_t Size>
std::size_t reported_part(const std::array<Decision, Size>& parts, bool allowed) {
    std::size_t reported = Size;
    for (std::size_t i = 0; i < Size; ++i) {
        const bool stands_for_all = allowed || !parts[i].allowed;
        if (stands_for_all && (reported == Size || (allowed ? parts[i].remaining < parts[reported].remaining
                                                            : parts[i].retry_after > parts[reported].retry_after))) {
            reported = i;
        }
    }
    return reported;
}

/// Why retry_after of this check is not exact; empty if it is.
template <class Algorithm>
std::string retry_fault(const Client<Algorithm>& client, std::uint64_t now, std::uint64_t cost, std::uint64_t limit) {
    const Decision decision = client.peek(now, cost);
    if (cost > limit) {
        return !decision.allowed && decision.retry_after == penstock::never ? "" : "this cost can never pass";
    }
    if (decision.allowed) {
        return decision.retry_after.count() == 0 ? "" : "allowed, but told to wait";
    }
    if (decision.retry_after == penstock::never || decision.retry_after.count() < 1) {
        return "rejected, and not told until when";
    }
    const std::uint64_t then = now + trace::count_of(decision.retry_after);
    if (then > trace::max_time) {
        return "";
    }
    if (!client.peek(then, cost).allowed) {
        return "rejected at now + retry_after";
    }
    for (std::uint64_t earlier = (std::max)(now, trace::minus(then, 10)); earlier < then; ++earlier) {
        if (client.peek(earlier, cost).allowed) {
            return "admitted before now + retry_after";
        }
    }
    return "";
}

/// Why reset_after of this check is not exact; empty if it is.
template <class Algorithm>
std::string reset_fault(const Client<Algorithm>& client, std::uint64_t now, std::uint64_t cost) {
    const Decision decision = client.peek(now, cost);
    Client<Algorithm> after = client;
    after.apply(Check{}, now, cost);
    const auto parts = client.peek_parts(now, cost);
    const std::size_t reported = reported_part(parts, decision.allowed);
    if (decision.limit != parts[reported].limit) {
        return "the limit is of another part";
    }
    const std::uint64_t then = now + trace::count_of(decision.reset_after);
    if (then > trace::max_time) {
        return "";
    }
    if (after.peek_parts(then, 0)[reported].remaining != decision.limit) {
        return "not full at now + reset_after";
    }
    const bool full_before = then > now && after.peek_parts(then - 1, 0)[reported].remaining == decision.limit;
    return full_before ? "full before now + reset_after" : "";
}

template <class Algorithm>
void require_exact(const Client<Algorithm>& client,
                   const trace::ParametersOf<Algorithm>& parameters,
                   std::uint64_t now,
                   std::uint64_t cost) {
    std::string fault = retry_fault(client, now, cost, trace::limit_of(parameters));
    if (fault.empty()) {
        fault = reset_fault(client, now, cost);
    }
    if (!fault.empty()) {
        std::ostringstream out;
        out << fault << "\n  PENSTOCK_SEED=" << trace::seed_offset() << ", ";
        trace::describe(out, parameters);
        out << " at " << now << " us, cost " << cost << ": " << client.peek(now, cost);
        FAIL(out.str());
    }
}

template <class Algorithm>
void random_traffic(Client<Algorithm>& client, Random& random, std::uint64_t now, std::uint64_t cost) {
    const std::uint64_t dice = random.bits() % 10;
    if (dice < 7) {
        client.apply(Check{}, now, cost);
    } else if (dice < 8) {
        client.apply(Refund{}, now, cost);
    } else {
        client.apply(Charge{}, now, cost);
    }
}

// Small limits: every cost, at every step of some histories.

template <class Algorithm>
void every_cost_is_exact(const trace::ParametersOf<Algorithm>& parameters, Random& random) {
    const std::uint64_t limit = trace::limit_of(parameters);
    for (int history = 0; history < 10; ++history) {
        Client<Algorithm> client(parameters, random.between(0, 20));
        std::uint64_t now = random.between(0, 30);
        for (int step = 0; step < 12; ++step) {
            random_traffic(client, random, now, random.between(0, limit + 1));
            now = random.chance(10) ? trace::minus(now, random.between(1, 9)) : now + random.between(0, 4);
            for (std::uint64_t cost = 0; cost <= limit + 1; ++cost) {
                require_exact(client, parameters, now, cost);
            }
        }
    }
}

penstock::Align align(bool staggered) {
    return staggered ? penstock::Align::staggered : penstock::Align::epoch;
}

std::vector<TokenBucket> small_parameters(std::type_identity<TokenBucket>) {
    std::vector<TokenBucket> all;
    for (std::uint64_t capacity = 1; capacity <= 5; ++capacity) {
        for (int count = 1; count <= 4; ++count) {
            for (int period = 1; period <= 7; ++period) {
                all.push_back(
                    {.capacity = capacity, .refill = penstock::per(count, std::chrono::microseconds(period))});
            }
        }
    }
    return all;
}

std::vector<SlidingWindow> small_parameters(std::type_identity<SlidingWindow>) {
    std::vector<SlidingWindow> all;
    for (std::uint64_t limit = 1; limit <= 5; ++limit) {
        for (int window = 1; window <= 11; ++window) {
            for (const bool staggered : {false, true}) {
                all.push_back({.limit = limit, .window = std::chrono::microseconds(window), .align = align(staggered)});
            }
        }
    }
    return all;
}

std::vector<FixedWindow> small_parameters(std::type_identity<FixedWindow>) {
    std::vector<FixedWindow> all;
    for (const SlidingWindow& window : small_parameters(std::type_identity<SlidingWindow>{})) {
        for (const int offset : {0, 3, -2}) {
            all.push_back({.limit = window.limit,
                           .window = window.window,
                           .align = window.align,
                           .offset = std::chrono::microseconds(offset)});
        }
    }
    return all;
}

/// Not every combination of the parts, but each part's every parameter.
template <class... Parts>
std::vector<std::tuple<Parts...>> small_parameters(std::type_identity<AllOf<Parts...>>) {
    const std::tuple candidates{small_parameters(std::type_identity<Parts>{})...};
    Random random = trace::random_of(60, 0);
    constexpr std::size_t samples = 150;
    std::vector<std::tuple<Parts...>> all;
    all.reserve(samples);
    while (all.size() < samples) {
        all.push_back(
            std::apply([&](const auto&... part) { return std::tuple<Parts...>{part[random.bits() % part.size()]...}; },
                       candidates));
    }
    return all;
}

template <class Algorithm>
void small_limits_are_exact() {
    std::uint64_t number = 0;
    for (const auto& parameters : small_parameters(std::type_identity<Algorithm>{})) {
        Random random = trace::random_of(61, number++);
        every_cost_is_exact<Algorithm>(parameters, random);
    }
    CHECK(number > 0);
}

// Any limits: costs are sampled, and the plan may change.

template <class Algorithm>
void sampled_costs_are_exact(Random& random) {
    const auto twins = trace::random_twins<Algorithm>(random);
    const auto* twin = &twins[0];
    Client<Algorithm> client(twin->parameters, trace::random_phase(random));
    std::uint64_t now = trace::random_start(random, twin->scale());
    Decision last = client.peek(now, 1);
    for (int step = 0; step < 40; ++step) {
        random_traffic(client, random, now, trace::random_cost(random, last.remaining, twin->limit()));
        if (random.chance(20)) {
            twin = &twins[random.bits() % twins.size()];
            client.move_to(twin->parameters);
        }
        now = trace::next_time(random, now, {last.retry_after, last.reset_after}, twin->scale());
        const std::uint64_t cost = trace::random_cost(random, client.peek(now, 0).remaining, twin->limit());
        require_exact(client, twin->parameters, now, cost);
        last = client.peek(now, cost);
    }
}

template <class Algorithm>
void all_limits_are_exact() {
    constexpr std::uint64_t algorithms = 6;
    const std::uint64_t traces = trace::step_count(3'000'000) / algorithms / 40 + 1;
    for (std::uint64_t number = 0; number < traces; ++number) {
        Random random = trace::random_of(62, number);
        sampled_costs_are_exact<Algorithm>(random);
    }
    CHECK(traces > 0);
}

}  // namespace

TEST_CASE_TEMPLATE("a check is admitted at retry_after and not a microsecond earlier, the full limit is back at "
                   "reset_after and not a microsecond earlier",
                   Algorithm,
                   TokenBucket,
                   SlidingWindow,
                   FixedWindow,
                   AllOf<TokenBucket, SlidingWindow>,
                   AllOf<SlidingWindow, SlidingWindow>,
                   AllOf<FixedWindow, TokenBucket, SlidingWindow>) {
    SUBCASE("small limits, every cost") {
        small_limits_are_exact<Algorithm>();
    }
    SUBCASE("any limits, plans that change") {
        all_limits_are_exact<Algorithm>();
    }
}
