// SPDX-License-Identifier: MIT
// Layout: under which key, and in which field, a client's state stands in Redis.
#ifndef PENSTOCK_REDIS_LAYOUT_HPP
#define PENSTOCK_REDIS_LAYOUT_HPP

#include <penstock/config.hpp>
#include <penstock/detail/wide.hpp>
#include <penstock/hash.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// How states are kept.
enum class Layout : std::uint8_t {
    packed,   ///< many clients in one small hash: about a fifth of the memory
    per_key,  ///< one string each, under a key that shows the client: to be looked at by hand
};

/// Whose time the states are on.
enum class Time : std::uint8_t {
    server,   ///< the server's TIME
    limiter,  ///< that of the limiter's clock, which comes with each call
};

/// Into how many buckets a packed layout spreads so many entries: the power of two with which 64 or fewer stand in
/// each, 1 to 2^32.
[[nodiscard]] constexpr std::uint64_t bucket_count(std::uint64_t expected_entries) noexcept {
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    return expected_entries >= 64 * most ? most : std::bit_ceil((expected_entries + 63) / 64);
}

/// Where an entry of a packed layout stands.
struct PackedPlace {
    std::uint64_t bucket;        ///< the same for all entries of a client
    std::array<char, 12> field;  ///< of the client and the limiter

    [[nodiscard]] std::string_view name() const noexcept { return {field.data(), field.size()}; }
};

/// The share of a limiter's name in its fields. O(length).
[[nodiscard]] inline std::uint64_t name_hash(std::string_view name, std::uint64_t secret) noexcept {
    return detail::hash_pair(name, ~secret).first;
}

/// `secret` is one that clients cannot know, the same in all processes: then nobody finds two clients of one place.
/// `buckets` is a power of two.
[[nodiscard]] inline PackedPlace packed_place(std::string_view client,
                                              std::uint64_t secret,
                                              std::uint64_t hash_of_name,
                                              std::uint64_t buckets) noexcept {
    const detail::HashPair hash = detail::hash_pair(client, secret);
    PackedPlace place{detail::multiply(hash.first, buckets).high, {}};
    for (std::size_t byte = 0; byte < 4; ++byte) {
        place.field[byte] = static_cast<char>(hash.first >> (8 * byte) & 0xffU);
    }
    const std::uint64_t mixed = hash.second ^ hash_of_name;
    for (std::size_t byte = 0; byte < 8; ++byte) {
        place.field[4 + byte] = static_cast<char>(mixed >> (8 * byte) & 0xffU);
    }
    return place;
}

/// Appends the key of a bucket: `prefix:{number}`, which is `prefix:{number}t` for states on the limiters' own time:
/// what is swept from a bucket must all be on one clock. The prefix has no braces.
inline void append_bucket_key(std::string& to, std::string_view prefix, std::uint64_t bucket, Time time) {
    std::array<char, 13> digits{};
    std::size_t first = digits.size();
    do {
        digits[--first] = "0123456789abcdefghijklmnopqrstuv"[bucket & 31U];
        bucket >>= 5;
    } while (bucket != 0);
    to.append(prefix).append(":{").append(digits.data() + first, digits.size() - first).append("}");
    if (time == Time::limiter) {
        to += 't';
    }
}

/// Appends the key of a client: `prefix:{client}:name`. Braces and percent signs of the client are written as %7B, %7D
/// and %25, and the empty client as %, since an empty tag is none: no client can choose another's slot or key. The
/// prefix has no braces.
inline void append_client_key(std::string& to,
                              std::string_view prefix,
                              std::string_view client,
                              std::string_view name) {
    to.append(prefix).append(":{");
    for (const char byte : client) {
        switch (byte) {
        case '{':
            to.append("%7B");
            break;
        case '}':
            to.append("%7D");
            break;
        case '%':
            to.append("%25");
            break;
        default:
            to += byte;
        }
    }
    if (client.empty()) {
        to += '%';
    }
    to.append("}:").append(name);
}

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_LAYOUT_HPP
