// SPDX-License-Identifier: MIT
// What a test expects of a decision: CHECK(limiter.check("key") == rejected(100ms)).
#ifndef PENSTOCK_TESTS_SUPPORT_EXPECT_HPP
#define PENSTOCK_TESTS_SUPPORT_EXPECT_HPP

#include <penstock/decision.hpp>

#include "print.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

namespace expect {

/// The fields that the test states; of the others only what holds for every decision of a storage.
class Answer {
public:
    explicit Answer(bool allowed) : allowed_(allowed) {}

    [[nodiscard]] Answer limit(std::uint64_t units) const { return with(&Answer::limit_, units); }
    [[nodiscard]] Answer remaining(std::uint64_t units) const { return with(&Answer::remaining_, units); }
    [[nodiscard]] Answer retry_after(std::chrono::microseconds wait) const { return with(&Answer::retry_after_, wait); }
    [[nodiscard]] Answer reset_after(std::chrono::microseconds wait) const { return with(&Answer::reset_after_, wait); }

    friend bool operator==(const penstock::Decision& decision, const Answer& answer) {
        return decision.allowed == answer.allowed_ && (decision.retry_after.count() > 0) != answer.allowed_ &&
               counted(decision.source) && decision.remaining <= decision.limit &&
               fits(decision.limit, answer.limit_) && fits(decision.remaining, answer.remaining_) &&
               fits(decision.retry_after, answer.retry_after_) && fits(decision.reset_after, answer.reset_after_);
    }

    friend std::ostream& operator<<(std::ostream& out, const Answer& answer) {
        out << (answer.allowed_ ? "allowed" : "rejected");
        if (answer.limit_) out << ", limit " << *answer.limit_;
        if (answer.remaining_) out << ", remaining " << *answer.remaining_;
        if (answer.retry_after_) penstock::print_duration(out << ", retry_after ", *answer.retry_after_);
        if (answer.reset_after_) penstock::print_duration(out << ", reset_after ", *answer.reset_after_);
        return out;
    }

private:
    /// Decided by the client's count, here or as it was known a moment ago.
    [[nodiscard]] static bool counted(penstock::Source source) {
        using enum penstock::Source;
        return source == store || source == denied_cache || source == lease;
    }

    template <class T>
    [[nodiscard]] Answer with(std::optional<T> Answer::*field, T value) const {
        Answer answer = *this;
        answer.*field = value;
        return answer;
    }

    template <class T>
    static bool fits(T value, const std::optional<T>& expected) {
        return !expected || *expected == value;
    }

    bool allowed_;
    std::optional<std::uint64_t> limit_{};
    std::optional<std::uint64_t> remaining_{};
    std::optional<std::chrono::microseconds> retry_after_{};
    std::optional<std::chrono::microseconds> reset_after_{};
};

inline Answer allowed() {
    return Answer(true);
}

inline Answer allowed(std::uint64_t remaining) {
    return allowed().remaining(remaining);
}

inline Answer rejected() {
    return Answer(false);
}

inline Answer rejected(std::chrono::microseconds retry_after) {
    return rejected().retry_after(retry_after);
}

/// How many of so many checks of cost 1 are allowed.
template <class Limiter>
std::uint64_t allowed_of(std::uint64_t checks, Limiter& limiter, std::string_view key) {
    std::uint64_t allowed = 0;
    for (std::uint64_t i = 0; i < checks; ++i) {
        allowed += limiter.check(key).allowed ? 1 : 0;
    }
    return allowed;
}

}  // namespace expect

#endif  // PENSTOCK_TESTS_SUPPORT_EXPECT_HPP
