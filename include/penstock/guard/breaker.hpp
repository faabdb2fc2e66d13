// SPDX-License-Identifier: MIT
// Breaker: stops asking a store that fails, and finds out when it is well again. Pure: no clock, no thread.
#ifndef PENSTOCK_GUARD_BREAKER_HPP
#define PENSTOCK_GUARD_BREAKER_HPP

#include <penstock/config.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

/// When a breaker opens, and how it closes again.
struct BreakerOptions {
    /// So many failures within the window open it: 1 to 1,000,000.
    std::uint64_t failures = 5;

    /// 10 us to 1 hour, looked at in tenths: the present one and the nine before.
    std::chrono::microseconds window = std::chrono::seconds{1};

    /// If they are at least so many of a hundred calls in the window: 0 to 100.
    unsigned percent = 10;

    /// A call that took longer counts as a failure, though its answer is used: 1 us to 1 hour.
    std::chrono::microseconds slow = std::chrono::milliseconds{100};

    /// While open, one call is let through after so long, less up to a fifth at random so that gateways do not probe in
    /// step: 1 us to 1 hour.
    std::chrono::microseconds probe_interval = std::chrono::seconds{5};

    friend constexpr bool operator==(const BreakerOptions&, const BreakerOptions&) noexcept = default;
};

namespace detail {

/// Throws std::invalid_argument if an option is out of range.
inline void validate_breaker(const BreakerOptions& options) {
    const auto demand = [](bool valid, std::string_view field, const std::string& value, std::string_view allowed) {
        if (!valid) {
            throw_invalid("Breaker." + std::string(field), value, allowed);
        }
    };
    const auto demand_time = [&](std::string_view field, std::chrono::microseconds time, std::int64_t least) {
        const bool valid = time.count() >= least && time <= std::chrono::hours{1};
        demand(valid, field, std::to_string(time.count()) + " us", std::to_string(least) + " us to 3600000000 us");
    };
    const bool some_failures = options.failures >= 1 && options.failures <= 1'000'000;
    demand(some_failures, "failures", std::to_string(options.failures), "1 to 1000000");
    demand_time("window", options.window, 10);
    demand(options.percent <= 100, "percent", std::to_string(options.percent), "0 to 100");
    demand_time("slow", options.slow, 1);
    demand_time("probe_interval", options.probe_interval, 1);
}

/// What the end of a call tells of the node.
enum class Health : std::uint8_t {
    well,
    unwell,   ///< the next call would fare no better
    unknown,  ///< it was not asked
};

/// By an error, or none. Errors that are about one key, or say at once and cheaply what the store will not do, are no
/// sign that the node is not well.
[[nodiscard]] constexpr Health health_of(StoreError error) noexcept {
    using enum StoreError;
    switch (error) {
    case unavailable:
    case timeout:
    case overloaded:
    case protocol_error:
    case no_script:
    case cluster_down:
    case master_down:
    case loading:
    case busy:
    case not_authenticated:
    case wrong_password:
    case too_many_clients:
    case tls_failed:
        return Health::unwell;
    case shut_down:
    case breaker_open:
        return Health::unknown;
    default:
        return Health::well;
    }
}

}  // namespace detail

/// What a breaker says of a call.
enum class Pass : std::uint8_t {
    granted,  ///< ask the store
    probe,    ///< ask the store: the answer closes the breaker
    refused,  ///< do not ask
};

/// A circuit breaker. Closed, it counts calls and failures in tenths of the window; when there are too many it opens.
/// Open, it lets one call through after each probe interval; the first of these that succeeds closes it. What comes
/// back from calls that were granted before it opened changes nothing. Times may go back: then they stand still. Not
/// thread-safe; see Circuit. All O(1).
/// Source: the pattern of that name in Nygard, Release It!, 2007.
class Breaker {
public:
    explicit Breaker(const BreakerOptions& options) noexcept : options_(options) {}

    [[nodiscard]] bool open() const noexcept { return open_; }

    /// While open: when the next probe is due.
    [[nodiscard]] Micros probe_at() const noexcept { return probe_at_; }

    /// Whether a call may be made. `random` is any 64 bits.
    [[nodiscard]] Pass ask(Micros now, std::uint64_t random) noexcept {
        if (!open_) {
            return Pass::granted;
        }
        if (now < probe_at_) {
            return Pass::refused;
        }
        expect_probe(now, random);
        return Pass::probe;
    }

    /// So many calls were granted, made, and are well.
    void succeeded(Micros now, std::uint64_t calls) noexcept {
        if (!open_) {
            tenth(now).calls += calls;
        }
    }

    /// A call was granted, and failed.
    void failed(Micros now, std::uint64_t random) noexcept {
        if (open_) {
            return;
        }
        Tenth& current = tenth(now);
        ++current.calls;
        ++current.failures;
        std::uint64_t calls = 0;
        std::uint64_t failures = 0;
        for (const Tenth& each : tenths_) {
            const bool counts = each.number + tenths > current.number;
            calls += counts ? each.calls : 0;
            failures += counts ? each.failures : 0;
        }
        if (failures >= options_.failures && failures * 100 >= calls * options_.percent) {
            open_ = true;
            expect_probe(now, random);
        }
    }

    /// A probe has come back without having reached the store: the next call is one.
    void probe_again(Micros now) noexcept { probe_at_ = (std::min)(probe_at_, now); }

    /// A probe has come back.
    void probed(bool well) noexcept {
        if (well && open_) {
            open_ = false;
            tenths_ = {};
        }
    }

    /// When the tenth of the window that a time lies in is over.
    [[nodiscard]] Micros end_of_tenth(Micros time) const noexcept { return (time / length() + 1) * length(); }

private:
    static constexpr std::uint64_t tenths = 10;

    [[nodiscard]] Micros length() const noexcept { return static_cast<Micros>(options_.window.count()) / tenths; }

    struct Tenth {
        std::uint64_t number = 0;
        std::uint64_t calls = 0;
        std::uint64_t failures = 0;
    };

    Tenth& tenth(Micros now) noexcept {
        latest_ = (std::max)(latest_, now / length());
        Tenth& found = tenths_[latest_ % tenths];
        if (found.number != latest_) {
            found = {.number = latest_};
        }
        return found;
    }

    void expect_probe(Micros now, std::uint64_t random) noexcept {
        const auto full = static_cast<std::uint64_t>(options_.probe_interval.count());
        probe_at_ = now + full - random % (full / 5 + 1);
    }

    BreakerOptions options_;
    bool open_ = false;
    Micros probe_at_ = 0;
    std::uint64_t latest_ = 0;
    std::array<Tenth, tenths> tenths_{};
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_BREAKER_HPP
