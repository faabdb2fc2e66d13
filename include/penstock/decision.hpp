// SPDX-License-Identifier: MIT
// Decision: the answer to a check.
#ifndef PENSTOCK_DECISION_HPP
#define PENSTOCK_DECISION_HPP

#include <penstock/config.hpp>

#include <chrono>
#include <cstdint>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

/// The retry_after of a cost that can never pass, because it is above the limit: compare before adding it to a time.
inline constexpr std::chrono::microseconds never = (std::chrono::microseconds::max)();

/// Who decided.
enum class Source : std::uint8_t {
    store,            ///< the storage, with the client's state at hand
    lease,            ///< units taken from the store earlier and held in this process
    denied_cache,     ///< this process remembers that the client is blocked
    fallback,         ///< the local limiter that stands in for a failed store
    fail_open,        ///< nobody: the store failed and the limiter lets pass
    fail_closed,      ///< nobody: the store failed and the limiter rejects
    override_block,   ///< an operator's block
    override_exempt,  ///< an operator's exemption
    shed,             ///< load shedding, before the store was asked
    unmatched,        ///< no rule applies
};

[[nodiscard]] constexpr std::string_view to_string(Source source) noexcept {
    switch (source) {
        using enum Source;
    case store:
        return "store";
    case lease:
        return "lease";
    case denied_cache:
        return "denied_cache";
    case fallback:
        return "fallback";
    case fail_open:
        return "fail_open";
    case fail_closed:
        return "fail_closed";
    case override_block:
        return "override_block";
    case override_exempt:
        return "override_exempt";
    case shed:
        return "shed";
    case unmatched:
        return "unmatched";
    }
    return "unknown";
}

/// The answer to a check. Exact to the microsecond if no other traffic comes: the same check is rejected one
/// microsecond before retry_after has passed and admitted when it has.
struct [[nodiscard]] Decision {
    bool allowed = false;
    std::uint64_t limit = 0;                   ///< capacity or window limit of the part that decided, in units
    std::uint64_t remaining = 0;               ///< whole units that could still be taken now, after this check
    std::chrono::microseconds retry_after{0};  ///< until the same check is admitted; 0 if allowed; or `never`
    std::chrono::microseconds reset_after{0};  ///< until the full limit is back if nothing else comes
    Source source = Source::store;

    constexpr explicit operator bool() const noexcept { return allowed; }

    friend constexpr bool operator==(const Decision&, const Decision&) noexcept = default;
};

namespace detail {

/// Copies field by field. Compilers copy a struct in pieces that are wider than the fields it was just written by, and
/// processors wait some 15 cycles before they load what spans two stores.
constexpr void copy_fields(Decision& to, const Decision& from) noexcept {
    to.allowed = from.allowed;
    to.limit = from.limit;
    to.remaining = from.remaining;
    to.retry_after = from.retry_after;
    to.reset_after = from.reset_after;
    to.source = from.source;
}

}  // namespace detail

/// The answer to `reserve`: if the decision is allowed, the request has its turn after `wait`.
struct [[nodiscard]] Reservation {
    Decision decision{};
    std::chrono::microseconds wait{0};  ///< how long to hold the request; 0 if rejected

    constexpr explicit operator bool() const noexcept { return decision.allowed; }

    friend constexpr bool operator==(const Reservation&, const Reservation&) noexcept = default;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DECISION_HPP
