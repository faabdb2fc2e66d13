// SPDX-License-Identifier: MIT
// SHA-1, by which Redis names its scripts.
#ifndef PENSTOCK_REDIS_SHA1_HPP
#define PENSTOCK_REDIS_SHA1_HPP

#include <penstock/config.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// The five words of the digest while blocks of 64 bytes are taken in.
class Sha1 {
public:
    void add(std::string_view block) noexcept {
        std::array<std::uint32_t, 80> words{};
        for (std::size_t i = 0; i < 16; ++i) {
            words[i] = big_endian(block.substr(4 * i, 4));
        }
        for (std::size_t i = 16; i < words.size(); ++i) {
            words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
        }
        std::array<std::uint32_t, 5> next = words_;
        auto& [a, b, c, d, e] = next;
        for (std::size_t i = 0; i < words.size(); ++i) {
            const std::uint32_t sum = std::rotl(a, 5) + mixed(i / 20, b, c, d) + e + words[i];
            e = d;
            d = c;
            c = std::rotl(b, 30);
            b = a;
            a = sum;
        }
        for (std::size_t i = 0; i < next.size(); ++i) {
            words_[i] += next[i];
        }
    }

    [[nodiscard]] std::string hex() const {
        std::string text;
        for (const std::uint32_t word : words_) {
            for (unsigned shift = 32; shift > 0; shift -= 4) {
                text += "0123456789abcdef"[word >> (shift - 4) & 15U];
            }
        }
        return text;
    }

private:
    [[nodiscard]] static std::uint32_t big_endian(std::string_view bytes) noexcept {
        std::uint32_t word = 0;
        for (const char byte : bytes) {
            word = word << 8 | static_cast<unsigned char>(byte);
        }
        return word;
    }

    [[nodiscard]] static std::uint32_t mixed(std::size_t round,
                                             std::uint32_t b,
                                             std::uint32_t c,
                                             std::uint32_t d) noexcept {
        switch (round) {
        case 0:
            return ((b & c) | (~b & d)) + 0x5a827999U;
        case 1:
            return (b ^ c ^ d) + 0x6ed9eba1U;
        case 2:
            return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcU;
        default:
            return (b ^ c ^ d) + 0xca62c1d6U;
        }
    }

    std::array<std::uint32_t, 5> words_{0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
};

}  // namespace detail

namespace redis {

/// The SHA-1 of a text as 40 lower-case hexadecimal digits. A name, not a protection. Source: RFC 3174.
[[nodiscard]] inline std::string sha1(std::string_view text) {
    detail::Sha1 digest;
    std::string_view rest = text;
    for (; rest.size() >= 64; rest.remove_prefix(64)) {
        digest.add(rest.substr(0, 64));
    }
    std::string end(rest);
    end += '\x80';
    end.resize(end.size() <= 56 ? 56 : 120, '\0');
    const std::uint64_t bits = std::uint64_t{text.size()} * 8;
    for (unsigned shift = 64; shift > 0; shift -= 8) {
        end += static_cast<char>(bits >> (shift - 8) & 0xffU);
    }
    for (std::size_t at = 0; at < end.size(); at += 64) {
        digest.add(std::string_view(end).substr(at, 64));
    }
    return digest.hex();
}

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_SHA1_HPP
