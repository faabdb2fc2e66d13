// SPDX-License-Identifier: MIT
// Random: the generator of every random test, the same on every machine.
#ifndef PENSTOCK_TESTS_SUPPORT_RANDOM_HPP
#define PENSTOCK_TESTS_SUPPORT_RANDOM_HPP

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>

namespace support {

/// Source: splitmix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t bits() {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    std::uint64_t below(std::uint64_t end) { return bits() % end; }

    bool chance(std::uint64_t percent) { return bits() % 100 < percent; }

    std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        const std::uint64_t count = high - low + 1;
        return count == 0 ? bits() : low + bits() % count;
    }

    /// Every power of two is as likely as every other.
    std::uint64_t log_between(std::uint64_t low, std::uint64_t high) {
        const auto width =
            between(static_cast<std::uint64_t>(std::bit_width(low)), static_cast<std::uint64_t>(std::bit_width(high)));
        if (width == 0) {
            return 0;
        }
        const std::uint64_t top = std::uint64_t{1} << (width - 1);
        return (std::clamp)(top | (bits() & (top - 1)), low, high);
    }

    std::uint64_t one_of(std::initializer_list<std::uint64_t> values) { return values.begin()[bits() % values.size()]; }

private:
    std::uint64_t state_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_RANDOM_HPP
