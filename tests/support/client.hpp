// SPDX-License-Identifier: MIT
// Client: one client of an algorithm's pure steps, without limiter, storage and clock.
#ifndef PENSTOCK_TESTS_SUPPORT_CLIENT_HPP
#define PENSTOCK_TESTS_SUPPORT_CLIENT_HPP

#include <penstock/decision.hpp>
#include <penstock/plan.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>

namespace support {

template <class Algorithm>
class Client {
public:
    using State = typename Algorithm::State;

    explicit constexpr Client(const Algorithm& algorithm, penstock::Micros phase = 0)
        : plan_(penstock::plan(algorithm)), phase_(phase) {}

    constexpr penstock::Decision check(std::chrono::microseconds now, std::uint64_t cost = 1) {
        return Algorithm::step(state_, plan_, micros(now), cost, phase_);
    }

    constexpr penstock::Decision refund(std::chrono::microseconds now, std::uint64_t cost) {
        return Algorithm::refund(state_, plan_, micros(now), cost, phase_);
    }

    constexpr penstock::Decision charge(std::chrono::microseconds now, std::uint64_t cost) {
        return Algorithm::charge(state_, plan_, micros(now), cost, phase_);
    }

    constexpr penstock::Reservation reserve(std::chrono::microseconds now,
                                            std::chrono::microseconds max_wait,
                                            std::uint64_t cost = 1) {
        return Algorithm::reserve(state_, plan_, micros(now), cost, phase_, max_wait);
    }

    /// Puts the client under another plan; what is remembered of it stays.
    constexpr void use(const Algorithm& algorithm) { plan_ = penstock::plan(algorithm); }

    constexpr const State& state() const { return state_; }

private:
    static constexpr penstock::Micros micros(std::chrono::microseconds now) {
        return static_cast<penstock::Micros>(now.count());
    }

    penstock::Plan<Algorithm> plan_;
    State state_{};
    penstock::Micros phase_;
};

/// Whether two states are the same memory: equality would not see what a comparison skips.
template <class State>
bool same_bits(const State& a, const State& b) {
    return std::memcmp(&a, &b, sizeof(State)) == 0;
}

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_CLIENT_HPP
