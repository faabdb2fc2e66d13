// SPDX-License-Identifier: MIT
// The least that an algorithm, a storage and a clock must have: what compiles with these asks for no more than the
// concepts promise.
#ifndef PENSTOCK_TESTS_SUPPORT_ARCHETYPES_HPP
#define PENSTOCK_TESTS_SUPPORT_ARCHETYPES_HPP

#include <penstock/decision.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace support {

/// So many units for each client, ever. A state without a stamp, and parameters without bounds.
struct Quota {
    std::uint64_t units;

    struct State {
        std::uint64_t used;
    };

    static penstock::Decision step(State& state,
                                   const penstock::Plan<Quota>& plan,
                                   penstock::Micros,
                                   std::uint64_t cost,
                                   penstock::Micros) noexcept {
        const std::uint64_t left = plan.units > state.used ? plan.units - state.used : 0;
        const bool fits = cost <= left;
        state.used += fits ? cost : 0;
        return {.allowed = fits || cost == 0,
                .limit = plan.units,
                .remaining = fits ? left - cost : left,
                .retry_after = fits || cost == 0 ? std::chrono::microseconds{0} : penstock::never,
                .reset_after = state.used == 0 ? std::chrono::microseconds{0} : penstock::never};
    }
};

/// Lets everyone pass who has the right key, and answers with what it was asked. Neither default constructible nor
/// copyable, as no limiter needs it to be.
class DoorStorage {
public:
    explicit DoorStorage(std::string_view key) : key_(key) {}
    DoorStorage(const DoorStorage&) = delete;
    DoorStorage& operator=(const DoorStorage&) = delete;

    template <class Algorithm>
    class Bound {
    public:
        explicit Bound(const DoorStorage& door) : key_(door.key_) {}
        Bound(const Bound&) = delete;
        Bound& operator=(const Bound&) = delete;

        penstock::StoreError apply(penstock::Op,
                                   std::string_view key,
                                   const penstock::Plan<Algorithm>&,
                                   penstock::Micros now,
                                   std::uint64_t cost,
                                   std::chrono::microseconds max_wait,
                                   penstock::Decision& decision) noexcept {
            decision = {.allowed = key == key_,
                        .limit = cost,
                        .retry_after = max_wait,
                        .reset_after = std::chrono::microseconds{static_cast<std::int64_t>(now)}};
            return penstock::StoreError::none;
        }

    private:
        std::string_view key_;
    };

private:
    std::string_view key_;
};

/// Stands at the time it was made for. Neither default constructible nor assignable, as no limiter needs it to be.
class StoppedClock {
public:
    explicit StoppedClock(std::chrono::microseconds time) : time_(time) {}
    StoppedClock(const StoppedClock&) = default;
    StoppedClock& operator=(const StoppedClock&) = delete;
    ~StoppedClock() = default;

    std::chrono::microseconds now() const noexcept { return time_; }

private:
    std::chrono::microseconds time_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_ARCHETYPES_HPP
