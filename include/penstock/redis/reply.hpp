// SPDX-License-Identifier: MIT
// What a server's error means.
#ifndef PENSTOCK_REDIS_REPLY_HPP
#define PENSTOCK_REDIS_REPLY_HPP

#include <penstock/config.hpp>
#include <penstock/redis/slot.hpp>
#include <penstock/redis/url.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Where a cluster sends a request on to.
struct Redirect {
    StoreError error = StoreError::protocol_error;  ///< moved or ask; or protocol_error, and nothing else is set
    std::uint16_t slot = 0;                         ///< below cluster_slots
    std::string_view host{};  ///< empty: the host that answered; valid as long as the error's text
    std::uint16_t port = 0;   ///< 1 or more

    friend constexpr bool operator==(const Redirect&, const Redirect&) noexcept = default;
};

}  // namespace redis

namespace detail {

struct ErrorWord {
    std::string_view word;
    StoreError error;
};

inline constexpr ErrorWord error_words[] = {
    {"NOSCRIPT", StoreError::no_script},
    {"MOVED", StoreError::moved},
    {"ASK", StoreError::ask},
    {"TRYAGAIN", StoreError::try_again},
    {"CLUSTERDOWN", StoreError::cluster_down},
    {"READONLY", StoreError::read_only},
    {"MASTERDOWN", StoreError::master_down},
    {"LOADING", StoreError::loading},
    {"BUSY", StoreError::busy},
    {"OOM", StoreError::out_of_memory},
    {"NOREPLICAS", StoreError::no_replicas},
    {"MISCONF", StoreError::misconfigured},
    {"WRONGTYPE", StoreError::wrong_type},
    {"NOAUTH", StoreError::not_authenticated},
    {"WRONGPASS", StoreError::wrong_password},
    {"NOPERM", StoreError::no_permission},
    {"CROSSSLOT", StoreError::cross_slot},
    {"PENSTOCK_FORMAT", StoreError::newer_format},
};

/// Takes the first word and the blank after it from the text.
[[nodiscard]] constexpr std::string_view take_word(std::string_view& text) noexcept {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix((std::min)(word.size() + 1, text.size()));
    return word;
}

/// Redis before 7 puts an error of a command in a script behind where it happened: "ERR Error running script (call to
/// f_sha1): @user_script:1: @user_script: 1: -READONLY You can't ...".
constexpr void skip_script(std::string_view& text) noexcept {
    constexpr std::string_view place = "@user_script:";
    const std::size_t last = text.rfind(place);
    if (!text.starts_with("ERR Error running script") || last == std::string_view::npos) {
        return;
    }
    std::string_view rest = text.substr(last + place.size());
    rest.remove_prefix((std::min)(rest.find_first_not_of(" 0123456789"), rest.size()));
    if (rest.starts_with(": ")) {
        rest.remove_prefix(2);
        rest.remove_prefix(rest.starts_with('-') ? 1 : 0);
        text = rest;
    }
}

}  // namespace detail

namespace redis {

/// The meaning of an error's text, without the '-' before it. The first word decides, since servers and versions differ
/// in the rest; but two errors have no word of their own. Never `none`. Thread-safe.
[[nodiscard]] constexpr StoreError classify(std::string_view text) noexcept {
    if (text.starts_with("ERR The user executing the script can't run this command")) {
        return StoreError::no_permission;
    }
    if (text.starts_with("ERR max number of clients")) {
        return StoreError::too_many_clients;
    }
    detail::skip_script(text);
    const std::string_view word = detail::take_word(text);
    for (const detail::ErrorWord& known : detail::error_words) {
        if (word == known.word) {
            return known.error;
        }
    }
    return StoreError::refused;
}

/// Reads "MOVED slot host:port" and "ASK slot host:port"; anything else is a protocol_error. Thread-safe, no
/// allocation.
[[nodiscard]] inline Redirect parse_redirect(std::string_view text) noexcept {
    Redirect redirect{.error = classify(text)};
    static_cast<void>(detail::take_word(text));
    const std::string_view slot = detail::take_word(text);
    // An IPv6 address has colons, and no brackets around it.
    const std::size_t colon = text.rfind(':');
    if ((redirect.error != StoreError::moved && redirect.error != StoreError::ask) ||
        !detail::read_number(slot, redirect.slot) || redirect.slot >= cluster_slots ||
        colon == std::string_view::npos || !detail::read_number(text.substr(colon + 1), redirect.port) ||
        redirect.port == 0) {
        return {};
    }
    redirect.host = text.substr(0, colon);
    return std::all_of(redirect.host.begin(), redirect.host.end(), detail::is_graphic) ? redirect : Redirect{};
}

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_REPLY_HPP
