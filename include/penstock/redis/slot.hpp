// SPDX-License-Identifier: MIT
// The slot of a key in a cluster.
#ifndef PENSTOCK_REDIS_SLOT_HPP
#define PENSTOCK_REDIS_SLOT_HPP

#include <penstock/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

inline constexpr std::array<std::uint16_t, 256> crc16_table = [] {
    std::array<std::uint16_t, 256> table{};
    for (std::size_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t crc = static_cast<std::uint32_t>(byte) << 8;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc << 1) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U);
        }
        table[byte] = static_cast<std::uint16_t>(crc);
    }
    return table;
}();

/// CRC16 as in XMODEM: polynomial 0x1021, starting from 0, nothing reflected. O(length).
[[nodiscard]] constexpr std::uint16_t crc16(std::string_view bytes) noexcept {
    std::uint32_t crc = 0;
    for (const char byte : bytes) {
        crc = ((crc << 8) ^ crc16_table[(crc >> 8 & 0xffU) ^ static_cast<unsigned char>(byte)]) & 0xffffU;
    }
    return static_cast<std::uint16_t>(crc);
}

/// What stands between the first '{' and the next '}', or the whole key if that is nothing.
[[nodiscard]] constexpr std::string_view hash_tag(std::string_view key) noexcept {
    const std::size_t open = key.find('{');
    if (open == std::string_view::npos) {
        return key;
    }
    const std::size_t close = key.find('}', open + 1);
    if (close == std::string_view::npos || close == open + 1) {
        return key;
    }
    return key.substr(open + 1, close - open - 1);
}

}  // namespace detail

namespace redis {

inline constexpr std::size_t cluster_slots = 16'384;

/// The slot of a key of any bytes, below cluster_slots. Keys with the same text between braces share one. Thread-safe.
/// O(length), no allocation. Source: Redis cluster specification, "Key distribution model" and "Hash tags".
[[nodiscard]] constexpr std::uint16_t slot_of(std::string_view key) noexcept {
    return static_cast<std::uint16_t>(detail::crc16(detail::hash_tag(key)) % cluster_slots);
}

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_SLOT_HPP
