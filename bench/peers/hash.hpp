// SPDX-License-Identifier: MIT
// The hash of the floor and of every peer: two multiplications for a key of 16 bytes, inlined.
#ifndef PENSTOCK_BENCH_PEERS_HASH_HPP
#define PENSTOCK_BENCH_PEERS_HASH_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace bench {

[[nodiscard]] inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(a) * b >> 64U);
}

[[nodiscard]] inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    return (a * b) ^ multiply_high(a, b);
}

[[nodiscard]] inline std::uint64_t load64(const char* from) noexcept {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

[[nodiscard]] inline std::uint64_t hash_key(std::string_view key) noexcept {
    constexpr std::uint64_t first = 0x9e3779b97f4a7c15U;
    constexpr std::uint64_t second = 0xe7037ed1a0b428dbU;
    const char* at = key.data();
    std::size_t left = key.size();
    std::uint64_t sum = first;
    for (; left > 16; at += 16, left -= 16) {
        sum = fold(load64(at) ^ second, load64(at + 8) ^ sum);
    }
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    if (left >= 8) {
        low = load64(at);
        high = load64(at + left - 8);
    } else {
        std::memcpy(&low, at, left);
    }
    return fold(key.size() ^ second, fold(low ^ second, high ^ sum));
}

/// A key with its hash, so that choosing the shard and finding the entry hash once.
struct HashedKey {
    std::string_view bytes;
    std::uint64_t hash;
};

/// Not noexcept on purpose: libstdc++ then keeps the hash in each node instead of hashing neighbours again.
struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const { return hash_key(key); }
    std::size_t operator()(const HashedKey& key) const { return key.hash; }
};

struct KeyEqual {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const noexcept { return a == b; }
    bool operator()(const HashedKey& a, std::string_view b) const noexcept { return a.bytes == b; }
    bool operator()(std::string_view a, const HashedKey& b) const noexcept { return a == b.bytes; }
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_PEERS_HASH_HPP
