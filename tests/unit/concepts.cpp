// SPDX-License-Identifier: MIT
#include <penstock/concepts.hpp>

#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/clock.hpp>
#include <penstock/storage/local.hpp>

#include <doctest/doctest.h>

#include "../support/archetypes.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using penstock::Decision;
using penstock::FixedWindow;
using penstock::Micros;
using penstock::Op;
using penstock::Plan;
using penstock::SlidingWindow;
using penstock::StoreError;
using penstock::TokenBucket;
using std::chrono::microseconds;

// Each of these lacks one thing; the name says which. The sentences that a user reads are tested where the snippets are
// that do not compile.

struct ClockWithoutNow {};

struct ClockOfMilliseconds {
    std::chrono::milliseconds now() const noexcept;
};

struct ClockThatThrows {
    microseconds now() const;
};

struct ClockThatChanges {
    microseconds now() noexcept;
};

struct ClockThatCannotBeCopied {
    ClockThatCannotBeCopied() = default;
    ClockThatCannotBeCopied(const ClockThatCannotBeCopied&) = delete;
    microseconds now() const noexcept;
};

TEST_CASE("a clock has a now() that is const, noexcept and of microseconds, and can be copied") {
    CHECK(penstock::Clock<support::StoppedClock>);
    CHECK_FALSE(penstock::Clock<ClockWithoutNow>);
    CHECK_FALSE(penstock::Clock<ClockOfMilliseconds>);
    CHECK_FALSE(penstock::Clock<ClockThatThrows>);
    CHECK_FALSE(penstock::Clock<ClockThatChanges>);
    CHECK_FALSE(penstock::Clock<ClockThatCannotBeCopied>);
    CHECK_FALSE(penstock::Clock<int>);
}

template <std::size_t Bytes>
struct Sized {
    struct State {
        std::array<std::byte, Bytes> bytes;
    };
    static Decision step(State&, const Plan<Sized>&, Micros, std::uint64_t, Micros) noexcept;
};

struct WithoutState {
    static Decision step(int&, const Plan<WithoutState>&, Micros, std::uint64_t, Micros) noexcept;
};

struct WithoutStep {
    struct State {};
};

struct StateThatIsNotTrivial {
    struct State {
        State() = default;
        State(const State&);
        State& operator=(const State&);
    };
    static Decision step(State&, const Plan<StateThatIsNotTrivial>&, Micros, std::uint64_t, Micros) noexcept;
};

struct ParametersThatAreNotTrivial {
    ParametersThatAreNotTrivial() = default;
    ParametersThatAreNotTrivial(const ParametersThatAreNotTrivial&);
    ParametersThatAreNotTrivial& operator=(const ParametersThatAreNotTrivial&);
    struct State {};
    static Decision step(State&, const Plan<ParametersThatAreNotTrivial>&, Micros, std::uint64_t, Micros) noexcept;
};

struct StepOfBool {
    struct State {};
    static bool step(State&, const Plan<StepOfBool>&, Micros, std::uint64_t, Micros) noexcept;
};

struct StepThatThrows {
    struct State {};
    static Decision step(State&, const Plan<StepThatThrows>&, Micros, std::uint64_t, Micros);
};

struct StepWithoutPhase {
    struct State {};
    static Decision step(State&, const Plan<StepWithoutPhase>&, Micros, std::uint64_t) noexcept;
};

struct StepOfAnObject {
    struct State {};
    Decision step(State&, const Plan<StepOfAnObject>&, Micros, std::uint64_t, Micros) noexcept;
};

TEST_CASE("an algorithm has a small trivial State and a static step that is noexcept and decides") {
    CHECK(penstock::Algorithm<support::Quota>);
    CHECK_FALSE(penstock::Algorithm<WithoutState>);
    CHECK_FALSE(penstock::Algorithm<WithoutStep>);
    CHECK_FALSE(penstock::Algorithm<StateThatIsNotTrivial>);
    CHECK_FALSE(penstock::Algorithm<ParametersThatAreNotTrivial>);
    CHECK_FALSE(penstock::Algorithm<StepOfBool>);
    CHECK_FALSE(penstock::Algorithm<StepThatThrows>);
    CHECK_FALSE(penstock::Algorithm<StepWithoutPhase>);
    CHECK_FALSE(penstock::Algorithm<StepOfAnObject>);
}

TEST_CASE("the largest state is of 120 bytes") {
    CHECK(penstock::largest_state == 120);
    CHECK(penstock::Algorithm<Sized<120>>);
    CHECK_FALSE(penstock::Algorithm<Sized<121>>);
}

struct Everything {
    struct State {};
    static Decision step(State&, const Plan<Everything>&, Micros, std::uint64_t, Micros) noexcept;
    static Decision refund(State&, const Plan<Everything>&, Micros, std::uint64_t, Micros) noexcept;
    static Decision charge(State&, const Plan<Everything>&, Micros, std::uint64_t, Micros) noexcept;
    static penstock::Reservation reserve(
        State&, const Plan<Everything>&, Micros, std::uint64_t, Micros, microseconds) noexcept;
    static Micros fresh_at(const State&) noexcept;
};

struct NearMisses {
    struct State {};
    static Decision step(State&, const Plan<NearMisses>&, Micros, std::uint64_t, Micros) noexcept;
    static void refund(State&, const Plan<NearMisses>&, Micros, std::uint64_t, Micros) noexcept;
    static Decision charge(State&, const Plan<NearMisses>&, Micros, std::uint64_t) noexcept;
    static Decision reserve(State&, const Plan<NearMisses>&, Micros, std::uint64_t, Micros, microseconds) noexcept;
    static microseconds fresh_at(const State&) noexcept;
};

TEST_CASE("what an algorithm can do besides is seen by its members") {
    CHECK(penstock::Refundable<Everything>);
    CHECK(penstock::Chargeable<Everything>);
    CHECK(penstock::Reservable<Everything>);
    CHECK(penstock::Expiring<Everything>);

    CHECK_FALSE(penstock::Refundable<support::Quota>);
    CHECK_FALSE(penstock::Chargeable<support::Quota>);
    CHECK_FALSE(penstock::Reservable<support::Quota>);
    CHECK_FALSE(penstock::Expiring<support::Quota>);

    CHECK(penstock::Algorithm<NearMisses>);
    CHECK_FALSE(penstock::Refundable<NearMisses>);
    CHECK_FALSE(penstock::Chargeable<NearMisses>);
    CHECK_FALSE(penstock::Reservable<NearMisses>);
    CHECK_FALSE(penstock::Expiring<NearMisses>);
}

TEST_CASE_TEMPLATE("the library's algorithms give back and take past the limit; of them the bucket takes in advance",
                   Algorithm,
                   TokenBucket,
                   SlidingWindow,
                   FixedWindow) {
    CHECK(penstock::Algorithm<Algorithm>);
    CHECK(penstock::Refundable<Algorithm>);
    CHECK(penstock::Chargeable<Algorithm>);
    CHECK(penstock::Expiring<Algorithm>);
    CHECK(penstock::Reservable<Algorithm> == std::same_as<Algorithm, TokenBucket>);
}

struct StorageWithoutBound {};

struct StorageBoundFromNothing {
    template <class Algorithm>
    struct Bound {
        StoreError apply(
            Op, std::string_view, const Plan<Algorithm>&, Micros, std::uint64_t, microseconds, Decision&) noexcept;
    };
};

struct StorageWithoutApply {
    template <class Algorithm>
    struct Bound {
        explicit Bound(const StorageWithoutApply&);
    };
};

struct StorageThatThrows {
    template <class Algorithm>
    struct Bound {
        explicit Bound(const StorageThatThrows&);
        StoreError apply(Op, std::string_view, const Plan<Algorithm>&, Micros, std::uint64_t, microseconds, Decision&);
    };
};

struct StorageOfBool {
    template <class Algorithm>
    struct Bound {
        explicit Bound(const StorageOfBool&);
        bool apply(
            Op, std::string_view, const Plan<Algorithm>&, Micros, std::uint64_t, microseconds, Decision&) noexcept;
    };
};

TEST_CASE("a storage has a Bound made from it, whose apply is noexcept and decides or says why not") {
    CHECK(penstock::Storage<support::DoorStorage, TokenBucket>);
    CHECK(penstock::Storage<support::DoorStorage, support::Quota>);
    CHECK(penstock::Storage<penstock::LocalStorage, TokenBucket>);
    CHECK(penstock::Storage<penstock::LocalStorage, support::Quota>);
    CHECK_FALSE(penstock::Storage<StorageWithoutBound, TokenBucket>);
    CHECK_FALSE(penstock::Storage<StorageBoundFromNothing, TokenBucket>);
    CHECK_FALSE(penstock::Storage<StorageWithoutApply, TokenBucket>);
    CHECK_FALSE(penstock::Storage<StorageThatThrows, TokenBucket>);
    CHECK_FALSE(penstock::Storage<StorageOfBool, TokenBucket>);
}

}  // namespace
