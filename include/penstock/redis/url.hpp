// SPDX-License-Identifier: MIT
// Where the servers are, read from a url.
#ifndef PENSTOCK_REDIS_URL_HPP
#define PENSTOCK_REDIS_URL_HPP

#include <penstock/config.hpp>
#include <penstock/detail/throw.hpp>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// One server: a host and port, or the path of a unix socket.
struct Endpoint {
    std::string host{};         ///< name or address, in lower case, IPv6 without brackets; empty for a unix socket
    std::uint16_t port = 6379;  ///< 0 for a unix socket
    std::string path{};         ///< of the unix socket; empty for a host

    friend bool operator==(const Endpoint&, const Endpoint&) noexcept = default;
};

/// What a url says.
struct Target {
    enum class Kind : std::uint8_t {
        single,   ///< one server
        cluster,  ///< the endpoints are where the cluster is looked for
        ring,     ///< independent servers among which keys are spread
    };

    Kind kind = Kind::single;
    bool tls = false;
    std::string user{};                 ///< empty: the server's default user
    std::string password{};             ///< empty: none
    int database = 0;                   ///< 0 or more; 0 in a cluster
    std::vector<Endpoint> endpoints{};  ///< one or more, each once, in the url's order

    friend bool operator==(const Target&, const Target&) noexcept = default;
};

}  // namespace redis

namespace detail {

/// "RedisStorage.url, port is 70000: allowed is 1 to 65535"
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_url(std::string_view part,
                                                              const std::string& value,
                                                              std::string_view allowed) {
    throw_invalid("RedisStorage.url, " + std::string(part), value, allowed);
}

/// Stands in error texts for what is a password, or may have been meant as one.
inline constexpr const char* masked = "***";

[[nodiscard]] constexpr bool is_graphic(char byte) noexcept {
    return static_cast<unsigned char>(byte) > 0x20 && byte != 0x7f;
}

/// For error texts: at most 64 bytes, in ASCII, so that none forges a line of a log.
[[nodiscard]] inline std::string quoted(std::string_view text) {
    std::string result = "'";
    for (const char byte : text.substr(0, 64)) {
        result.push_back(byte >= ' ' && byte <= '~' ? byte : '?');
    }
    return result += text.size() > 64 ? "...'" : "'";
}

/// False if the text is not entirely one number of that type.
template <std::unsigned_integral Number>
[[nodiscard]] bool read_number(std::string_view text, Number& number, int base = 10) noexcept {
    const char* end = text.data() + text.size();
    const std::from_chars_result result = std::from_chars(text.data(), end, number, base);
    return result.ec == std::errc{} && result.ptr == end;
}

/// False if an escape is not '%' and two digits, or something stands unescaped that has to be.
[[nodiscard]] inline bool decode_percent(std::string_view text, std::string_view reserved, std::string& decoded) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            const std::string_view digits = text.substr(i + 1, 2);
            unsigned char byte = 0;
            if (digits.size() != 2 || !read_number(digits, byte, 16)) return false;
            decoded.push_back(static_cast<char>(byte));
            i += 2;
        } else {
            if (!is_graphic(text[i]) || reserved.find(text[i]) != std::string_view::npos) return false;
            decoded.push_back(text[i]);
        }
    }
    return true;
}

[[nodiscard]] inline std::string read_credential(std::string_view part, std::string_view text) {
    std::string decoded;
    if (!decode_percent(text, "/?#@[]", decoded)) {
        refuse_url(part, masked, "text with blanks, control characters and any of %/?#@[] as % and two hex digits");
    }
    return decoded;
}

inline void read_credentials(std::string_view text, redis::Target& target) {
    const std::size_t colon = text.find(':');
    target.user = read_credential("user", text.substr(0, colon));
    if (colon != std::string_view::npos) {
        target.password = read_credential("password", text.substr(colon + 1));
    }
}

/// Host names are the same in either case. So the ring, which maps by name, has to see one of them.
[[nodiscard]] inline std::string lower_case(std::string_view text) {
    std::string lower(text);
    for (char& byte : lower) {
        if (byte >= 'A' && byte <= 'Z') {
            byte = static_cast<char>(byte - 'A' + 'a');
        }
    }
    return lower;
}

inline constexpr std::string_view allowed_host =
    "a name or address of letters, digits, '-', '.' and '_', or an IPv6 address in brackets";

[[nodiscard]] inline std::string read_name(std::string_view text) {
    std::string name = lower_case(text);
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._") != std::string::npos) {
        refuse_url("host", quoted(text), allowed_host);
    }
    return name;
}

[[nodiscard]] inline std::string read_ipv6(std::string_view text) {
    std::string address = lower_case(text);
    if (std::count(address.begin(), address.end(), ':') < 2 ||
        address.find_first_not_of("0123456789abcdef:.") != std::string::npos) {
        refuse_url("host", quoted(text), allowed_host);
    }
    return address;
}

[[nodiscard]] inline std::uint16_t read_port(std::string_view colon_and_port) {
    const bool colon = colon_and_port.starts_with(':');
    std::uint32_t port = 0;
    // In "redis://user:password", the host forgotten, the password stands here: only what looks like a port is shown.
    if (!colon || !read_number(colon_and_port.substr(1), port) || port > 99'999) {
        refuse_url("port", "not a port number", "1 to 65535");
    }
    if (port == 0 || port > (std::numeric_limits<std::uint16_t>::max)()) {
        refuse_url("port", std::to_string(port), "1 to 65535");
    }
    return static_cast<std::uint16_t>(port);
}

[[nodiscard]] inline redis::Endpoint read_endpoint(std::string_view text) {
    redis::Endpoint endpoint;
    std::size_t end = text.find(':');
    if (text.starts_with('[')) {
        end = text.find(']');
        if (end == std::string_view::npos) {
            refuse_url("host", "a bracket that is not closed", allowed_host);
        }
        endpoint.host = read_ipv6(text.substr(1, end - 1));
        ++end;
    } else {
        endpoint.host = read_name(text.substr(0, end));
    }
    if (end < text.size()) {
        endpoint.port = read_port(text.substr(end));
    }
    return endpoint;
}

inline void read_endpoints(std::string_view text, redis::Target& target) {
    std::size_t comma = 0;
    do {
        comma = target.kind == redis::Target::Kind::single ? std::string_view::npos : text.find(',');
        redis::Endpoint endpoint = read_endpoint(text.substr(0, comma));
        if (std::find(target.endpoints.begin(), target.endpoints.end(), endpoint) != target.endpoints.end()) {
            refuse_url("endpoint", quoted(text.substr(0, comma)) + " again", "each endpoint once");
        }
        target.endpoints.push_back(std::move(endpoint));
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    } while (comma != std::string_view::npos);
}

[[nodiscard]] inline int read_database(std::string_view text, redis::Target::Kind kind) {
    constexpr std::uint32_t most = (std::numeric_limits<std::int32_t>::max)();
    std::uint32_t database = 0;
    if (!read_number(text, database) || database > most) {
        refuse_url("database", quoted(text), "0 to 2147483647");
    }
    if (database != 0 && kind == redis::Target::Kind::cluster) {
        refuse_url("database", quoted(text), "0 in a cluster");
    }
    return static_cast<int>(database);
}

/// What follows "unix://": /path[?db=n]
[[nodiscard]] inline redis::Target read_unix_url(std::string_view rest) {
    const std::size_t mark = rest.find('?');
    const std::string_view path = rest.substr(0, mark);
    if (path.size() < 2 || path.front() != '/') {
        refuse_url("path", "empty or not absolute", "the path of a socket from '/' on, as in unix:///run/redis.sock");
    }
    redis::Target target;
    redis::Endpoint& socket = target.endpoints.emplace_back();
    socket.port = 0;
    if (!decode_percent(path, "", socket.path) || socket.path.find('\0') != std::string::npos) {
        refuse_url(
            "path", quoted(path), "text without NUL, with blanks, control characters and % as % and two hex digits");
    }
    constexpr std::size_t longest = 103;  // what every system's socket addresses have room for
    if (socket.path.size() > longest) {
        refuse_url("path", "of " + std::to_string(socket.path.size()) + " bytes", "one of at most 103");
    }
    if (mark != std::string_view::npos) {
        const std::string_view query = rest.substr(mark + 1);
        if (!query.starts_with("db=")) {
            refuse_url("query", masked, "db=n");
        }
        target.database = read_database(query.substr(3), target.kind);
    }
    return target;
}

/// What follows the scheme of a url with hosts: [user[:password]@]host[:port][,host[:port]...][/database]
[[nodiscard]] inline redis::Target read_host_url(redis::Target target, std::string_view rest) {
    // A password in which '@' or '/' is not escaped must not pass for a host or a database, and be shown as such.
    const std::size_t at = rest.rfind('@');
    if (at != std::string_view::npos) {
        read_credentials(rest.substr(0, at), target);
        rest.remove_prefix(at + 1);
    }
    if (rest.find('?') != std::string_view::npos) {
        refuse_url("query", masked, "none: the database is written as /n");
    }
    const std::size_t slash = rest.find('/');
    read_endpoints(rest.substr(0, slash), target);
    if (slash != std::string_view::npos && slash + 1 < rest.size()) {
        target.database = read_database(rest.substr(slash + 1), target.kind);
    }
    return target;
}

}  // namespace detail

namespace redis {

/// Reads redis://[user[:password]@]host[:port][/database], redis+cluster://[user[:password]@]host[:port],... and
/// redis+ring://[user[:password]@]host[:port],...[/database], the same with rediss for TLS, and unix:///path[?db=n].
/// IPv6 addresses stand in brackets; user, password and path may hold any byte as % and two hex digits. Throws
/// std::invalid_argument naming the part that is wrong, never showing the password. Thread-safe.
[[nodiscard]] inline Target parse_url(std::string_view url) {
    constexpr std::string_view separator = "://";
    const std::size_t end = url.find(separator);
    const std::string_view scheme = url.substr(0, end);
    if (end != std::string_view::npos) {
        using enum Target::Kind;
        const std::string_view rest = url.substr(end + separator.size());
        if (scheme == "redis") return detail::read_host_url({.kind = single}, rest);
        if (scheme == "rediss") return detail::read_host_url({.kind = single, .tls = true}, rest);
        if (scheme == "redis+cluster") return detail::read_host_url({.kind = cluster}, rest);
        if (scheme == "rediss+cluster") return detail::read_host_url({.kind = cluster, .tls = true}, rest);
        if (scheme == "redis+ring") return detail::read_host_url({.kind = ring}, rest);
        if (scheme == "rediss+ring") return detail::read_host_url({.kind = ring, .tls = true}, rest);
        if (scheme == "unix") return detail::read_unix_url(rest);
    }
    // Without a scheme this may be anything, such as "user:password@host".
    const bool shown = end != std::string_view::npos && scheme.find_first_of(":@") == std::string_view::npos;
    detail::refuse_url("scheme",
                       shown ? detail::quoted(scheme) : "missing",
                       "redis://, redis+cluster://, redis+ring://, the same with rediss for TLS, or unix://");
}

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_URL_HPP
