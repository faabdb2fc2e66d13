// SPDX-License-Identifier: MIT
// Any bytes are a sound target, or an error that shows neither a password nor control characters.
#include <penstock/redis/url.hpp>

#include "oracle.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using penstock::redis::Endpoint;
using penstock::redis::parse_url;
using penstock::redis::Target;
using Kind = penstock::redis::Target::Kind;

bool is_sound(const Endpoint& endpoint) {
    constexpr std::string_view in_names = "abcdefghijklmnopqrstuvwxyz0123456789-._:";
    const bool socket = endpoint.path.starts_with('/') && endpoint.path.size() <= 103 && endpoint.host.empty() &&
                        endpoint.port == 0 && endpoint.path.find('\0') == std::string::npos;
    const bool host = endpoint.path.empty() && !endpoint.host.empty() && endpoint.port > 0 &&
                      endpoint.host.find_first_not_of(in_names) == std::string::npos;
    return socket || host;
}

void check(const Target& target) {
    expect(!target.endpoints.empty(), "a target without an endpoint");
    expect(target.database >= 0 && (target.kind != Kind::cluster || target.database == 0), "a database that is none");
    expect(target.kind != Kind::single || target.endpoints.size() == 1, "one server in two places");
    for (auto at = target.endpoints.begin(); at != target.endpoints.end(); ++at) {
        expect(is_sound(*at), "an endpoint that is none");
        expect(std::find(target.endpoints.begin(), at, *at) == at, "an endpoint twice");
    }
}

/// The text of the error, if it is one.
std::optional<std::string> refusal(std::string_view url) {
    try {
        check(parse_url(url));
    } catch (const std::invalid_argument& error) {
        const std::string text = error.what();
        expect(text.starts_with("RedisStorage.url, "), "an error that names no part");
        expect(std::all_of(text.begin(), text.end(), [](char byte) { return byte >= ' ' && byte <= '~'; }),
               "an error that may forge a line of a log");
        return text;
    }
    return {};
}

/// Where a password stands, or may have been meant to: before the last '@', or anywhere where there is no scheme.
/// A path of a unix socket may hold both ':' and '@', and is no secret.
std::string_view secret_part(std::string_view url) {
    const std::size_t scheme = url.find("://");
    if (scheme == std::string_view::npos) {
        return url;
    }
    const std::size_t colon = url.find(':', scheme + 3);
    const std::size_t at = url.rfind('@');
    const bool shown = url.starts_with("unix:") || at == std::string_view::npos || colon > at;
    return shown ? std::string_view{} : url.substr(colon + 1, at - colon - 1);
}

/// Whatever is told of the rest of the input, this is not in it.
void check_that_no_password_is_shown(std::string_view url) {
    constexpr std::string_view password = "hunter2hunter2";
    const std::string_view part = secret_part(url);
    if (part.data() == nullptr || url.find(password) != std::string_view::npos) {
        return;
    }
    const auto begin = static_cast<std::size_t>(part.data() - url.data());
    for (std::size_t at = begin; at <= begin + part.size(); ++at) {
        const std::optional<std::string> text = refusal(std::string(url).insert(at, password));
        expect(!text || text->find(password) == std::string::npos, "an error that shows the password");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view url(reinterpret_cast<const char*>(data), size);
    static_cast<void>(refusal(url));
    check_that_no_password_is_shown(url.substr(0, 100));
    return 0;
}
