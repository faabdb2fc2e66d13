// SPDX-License-Identifier: MIT
// Meta: what stands in the store so that all gateways name their entries alike.
#ifndef PENSTOCK_REDIS_META_HPP
#define PENSTOCK_REDIS_META_HPP

#include <penstock/config.hpp>

#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Of the packed layout: into how many hashes the entries are spread, and the secret by which each finds its own.
/// Whoever comes first decides both.
struct Meta {
    std::uint64_t buckets = 0;  ///< a power of two
    std::uint64_t secret = 0;

    friend constexpr bool operator==(const Meta&, const Meta&) noexcept = default;
};

/// "1 16384 1311768467294899695": the version of the format, buckets, secret.
[[nodiscard]] inline std::string to_text(const Meta& meta) {
    return "1 " + std::to_string(meta.buckets) + " " + std::to_string(meta.secret);
}

/// Nothing if it is none, or that of a later version.
[[nodiscard]] inline std::optional<Meta> parse_meta(std::string_view text) noexcept {
    std::uint64_t numbers[3]{};
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    for (std::uint64_t& number : numbers) {
        if (&number != &numbers[0] && (at == end || *at++ != ' ')) {
            return {};
        }
        const auto [after, error] = std::from_chars(at, end, number);
        if (error != std::errc{}) {
            return {};
        }
        at = after;
    }
    if (at != end || numbers[0] != 1 || !std::has_single_bit(numbers[1])) {
        return {};
    }
    return Meta{.buckets = numbers[1], .secret = numbers[2]};
}

/// Run with EVAL when a connection begins: KEYS[1] is where the meta stands, ARGV[1] what it is if there is none yet,
/// ARGV[2] for how many milliseconds it is kept from now. Where the server takes no writes, what is there still counts.
inline constexpr std::string_view meta_script = R"lua(
local found = redis.call('GET', KEYS[1])
if found then
    redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
    return found
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
)lua";

/// 450 days, in milliseconds: longer than any window.
inline constexpr std::string_view meta_lifetime = "38880000000";

/// How often it is renewed, and looked at again, in microseconds: a store that has forgotten it gets the same one back,
/// from whichever process is first.
inline constexpr std::int64_t meta_renewal = 60'000'000;

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_META_HPP
