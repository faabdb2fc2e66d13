// SPDX-License-Identifier: MIT
// The peers' token bucket: exact in whole microseconds, in eight bytes (the generic cell rate algorithm).
#ifndef PENSTOCK_BENCH_PEERS_TOKEN_BUCKET_HPP
#define PENSTOCK_BENCH_PEERS_TOKEN_BUCKET_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "peer.hpp"

namespace bench {

[[nodiscard]] inline std::int64_t steady_micros() noexcept {
    using namespace std::chrono;
    return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}

/// Holds only when it will be full again: what is missing is the time until then.
class TokenBucket {
public:
    Answer check(const Limit& limit, std::uint64_t cost, std::int64_t now) noexcept {
        const std::int64_t unit = limit.micros_per_unit;
        const std::int64_t whole = static_cast<std::int64_t>(limit.capacity) * unit;
        const std::int64_t missing = (std::max)(full_at_ - now, std::int64_t{0});
        if (cost > limit.capacity) return {false, units(whole - missing, unit), never, missing};
        const std::int64_t after = missing + static_cast<std::int64_t>(cost) * unit;
        if (after > whole) return {false, units(whole - missing, unit), after - whole, missing};
        full_at_ = now + after;
        return {true, units(whole - after, unit), 0, after};
    }

private:
    static std::uint64_t units(std::int64_t micros, std::int64_t unit) noexcept {
        return static_cast<std::uint64_t>(micros) / static_cast<std::uint64_t>(unit);
    }

    std::int64_t full_at_ = 0;
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_PEERS_TOKEN_BUCKET_HPP
