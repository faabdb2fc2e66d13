// SPDX-License-Identifier: MIT
// The library as a contender, for any algorithm and clock.
#ifndef PENSTOCK_BENCH_CORE_OURS_HPP
#define PENSTOCK_BENCH_CORE_OURS_HPP

#include <penstock/penstock.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "../keys.hpp"
#include "../peers/peer.hpp"

namespace bench {

[[nodiscard]] inline Answer answer_of(const penstock::Decision& decision) noexcept {
    return {decision.allowed, decision.remaining, decision.retry_after.count(), decision.reset_after.count()};
}

[[nodiscard]] inline penstock::TokenBucket bucket_of(const Limit& limit) {
    return {.capacity = limit.capacity, .refill = {1, std::chrono::microseconds{limit.micros_per_unit}}};
}

using TwoLimits = penstock::AllOf<penstock::TokenBucket, penstock::FixedWindow>;

/// The single limit and a second one that never binds, so that the decisions stay those of the first.
[[nodiscard]] inline TwoLimits two_limits_of(const Limit& limit) {
    const penstock::FixedWindow window{.limit = std::uint64_t{1} << 39U, .window = std::chrono::hours{1}};
    return TwoLimits{bucket_of(limit), window};
}

template <class Algorithm, class Clock = penstock::SteadyClock>
class Ours {
public:
    // A fixed seed, as in tests only: every run puts the same keys into the same slots.
    Ours(const Algorithm& algorithm, std::size_t keys, Clock clock = {})
        : clock_{clock}, limiter_{algorithm,
                                  penstock::LocalStorage{{.max_keys = keys, .prefault = true, .seed = 1}},
                                  clock} {}

    Answer check(std::string_view key) { return answer_of(limiter_.check(key)); }

    Answer check_at(std::string_view key, std::uint64_t cost, std::int64_t now) {
        clock_.set(std::chrono::microseconds{now});
        return answer_of(limiter_.check(key, cost));
    }

    void check(std::span<const penstock::Check> checks, std::span<penstock::Decision> decisions) {
        limiter_.check(checks, decisions);
    }

    void set_time(std::int64_t now) { clock_.set(std::chrono::microseconds{now}); }

    /// Clients that are known to have used something.
    [[nodiscard]] std::size_t live(std::size_t clients) {
        std::size_t sum = 0;
        for (std::size_t client = 0; client < clients; ++client) {
            const penstock::Decision decision = limiter_.peek(key_of(client).view(), 0);
            sum += decision.remaining < decision.limit ? 1U : 0U;
        }
        return sum;
    }

    /// Clients that were dropped for want of room.
    [[nodiscard]] std::uint64_t forgotten() const { return limiter_.storage().evictions(); }

    /// The size of the table.
    [[nodiscard]] std::size_t bytes() const { return limiter_.storage().bytes(); }

private:
    Clock clock_;
    penstock::Limiter<Algorithm, penstock::LocalStorage, Clock> limiter_;
};

inline constexpr std::size_t batch_size = 32;

/// The same checks as run_all, 32 to a call.
template <class Contender>
[[nodiscard]] Tally run_batches(Contender& contender, std::span<const Key> keys) {
    std::array<penstock::Check, batch_size> checks{};
    std::array<penstock::Decision, batch_size> decisions{};
    Tally tally;
    while (!keys.empty()) {
        const std::size_t size = (std::min)(batch_size, keys.size());
        for (std::size_t i = 0; i < size; ++i) {
            checks[i].key = keys[i].view();
        }
        contender.check(std::span{checks}.first(size), std::span{decisions}.first(size));
        for (const penstock::Decision& decision : std::span{decisions}.first(size)) {
            tally.add(answer_of(decision));
        }
        keys = keys.subspan(size);
    }
    return tally;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_OURS_HPP
