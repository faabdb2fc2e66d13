// SPDX-License-Identifier: MIT
// QuickRandom: numbers that are spread well enough for jitter and choices, not for secrets.
#ifndef PENSTOCK_DETAIL_RANDOM_HPP
#define PENSTOCK_DETAIL_RANDOM_HPP

#include <penstock/config.hpp>
#include <penstock/detail/os.hpp>

#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Begins anywhere. Not thread-safe.
/// Source: the linear congruential generator of Knuth, The Art of Computer Programming 3.3.4 (MMIX); its low bits are
/// left out, since they repeat soon.
class QuickRandom {
public:
    /// 48 bits.
    [[nodiscard]] std::uint64_t next() noexcept {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return state_ >> 16;
    }

private:
    std::uint64_t state_ = random_bits();
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_RANDOM_HPP
