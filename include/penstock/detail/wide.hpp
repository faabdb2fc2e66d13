// SPDX-License-Identifier: MIT
// 128-bit products: multiply, add and divide without losing a bit.
#ifndef PENSTOCK_DETAIL_WIDE_HPP
#define PENSTOCK_DETAIL_WIDE_HPP

#include <penstock/config.hpp>

#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

#if PENSTOCK_INT128
__extension__ using Uint128 = unsigned __int128;
#endif

/// A 128-bit number as two halves.
struct Wide {
    std::uint64_t high;
    std::uint64_t low;
};

/// a * b, whole.
[[nodiscard]] constexpr Wide multiply(std::uint64_t a, std::uint64_t b) noexcept {
#if PENSTOCK_INT128
    const Uint128 product = Uint128{a} * b;
    return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
#else
    constexpr std::uint64_t low_half = 0xffffffffU;
    const std::uint64_t ll = (a & low_half) * (b & low_half);
    const std::uint64_t lh = (a & low_half) * (b >> 32);
    const std::uint64_t hl = (a >> 32) * (b & low_half);
    const std::uint64_t hh = (a >> 32) * (b >> 32);
    const std::uint64_t middle = (ll >> 32) + (lh & low_half) + (hl & low_half);
    return {hh + (lh >> 32) + (hl >> 32) + (middle >> 32), (middle << 32) | (ll & low_half)};
#endif
}

struct Division {
    std::uint64_t quotient;
    std::uint64_t remainder;
};

/// value / divisor. The quotient must fit 64 bits, which is value.high < divisor.
[[nodiscard]] constexpr Division divide(Wide value, std::uint64_t divisor) noexcept {
    if (value.high == 0) {
        if (value.low < divisor) {  // common, and a division costs as much as all the rest of a step
            return {0, value.low};
        }
        return {value.low / divisor, value.low % divisor};
    }
#if PENSTOCK_INT128
    const Uint128 whole = (Uint128{value.high} << 64) | value.low;
    return {static_cast<std::uint64_t>(whole / divisor), static_cast<std::uint64_t>(whole % divisor)};
#else
    std::uint64_t quotient = 0;
    std::uint64_t rest = value.high;
    for (int bit = 63; bit >= 0; --bit) {
        const bool carry = (rest >> 63) != 0;
        rest = (rest << 1) | ((value.low >> bit) & 1U);
        if (carry || rest >= divisor) {
            rest -= divisor;
            quotient |= std::uint64_t{1} << bit;
        }
    }
    return {quotient, rest};
#endif
}

/// (a * b + addend) / divisor, exact in between. The quotient must fit 64 bits.
[[nodiscard]] constexpr Division multiply_add_divide(std::uint64_t a,
                                                     std::uint64_t b,
                                                     std::uint64_t addend,
                                                     std::uint64_t divisor) noexcept {
    Wide sum = multiply(a, b);
    sum.low += addend;
    sum.high += sum.low < addend ? 1 : 0;
    return divide(sum, divisor);
}

/// The i-th of n parts of a number, i below n: those of all i add up to it, and the last is never smaller than another.
[[nodiscard]] constexpr std::uint64_t part_of(std::uint64_t number, std::uint64_t i, std::uint64_t n) noexcept {
    return multiply_add_divide(number, i + 1, 0, n).quotient - multiply_add_divide(number, i, 0, n).quotient;
}

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_WIDE_HPP
