// SPDX-License-Identifier: MIT
// Keys that nobody has used before, one after the other, without allocation.
#ifndef PENSTOCK_TESTS_SUPPORT_INVENTED_KEY_HPP
#define PENSTOCK_TESTS_SUPPORT_INVENTED_KEY_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The key of a number: 20 to 64 bytes, of which the last 16 are its digits.
class InventedKey {
public:
    explicit InventedKey(std::uint64_t number) : size_(20 + static_cast<std::size_t>(number % 45)) {
        bytes_.fill('k');
        for (std::size_t digit = size_; digit > size_ - 16; --digit, number >>= 4) {
            bytes_[digit - 1] = "0123456789abcdef"[number & 15];
        }
    }

    operator std::string_view() const { return {bytes_.data(), size_}; }

private:
    std::array<char, 64> bytes_;
    std::size_t size_;
};

#endif  // PENSTOCK_TESTS_SUPPORT_INVENTED_KEY_HPP
