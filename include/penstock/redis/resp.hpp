// SPDX-License-Identifier: MIT
// How commands are written in the server's protocol.
#ifndef PENSTOCK_REDIS_RESP_HPP
#define PENSTOCK_REDIS_RESP_HPP

#include <penstock/config.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// "*3\r\n" or "$24\r\n"
template <class Buffer>
void append_length(Buffer& out, char type, std::size_t length) {
    char text[24];
    text[0] = type;
    char* end = std::to_chars(text + 1, text + sizeof text - 2, length).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(text, static_cast<std::size_t>(end - text));
}

}  // namespace detail

namespace redis {

/// Appends what starts a command of so many arguments, its name among them; each follows by append_bulk. The buffer is
/// a std::string or has its append(const char*, size). Allocates only what makes the buffer grow.
/// Source: Redis serialization protocol (RESP2).
template <class Buffer>
void append_array_header(Buffer& out, std::size_t arguments) {
    detail::append_length(out, '*', arguments);
}

/// Appends an argument of any bytes.
template <class Buffer>
void append_bulk(Buffer& out, std::string_view bytes) {
    detail::append_length(out, '$', bytes.size());
    out.append(bytes.data(), bytes.size());
    out.append("\r\n", 2);
}

/// Appends a whole command.
template <class Buffer>
void append_command(Buffer& out, std::initializer_list<std::string_view> arguments) {
    append_array_header(out, arguments.size());
    for (const std::string_view argument : arguments) {
        append_bulk(out, argument);
    }
}

/// Appends a whole number as its decimal digits.
template <class Buffer, std::integral Number>
    requires(!std::same_as<Number, bool> && !std::same_as<Number, char>)
void append_bulk(Buffer& out, Number number) {
    char digits[24];
    const char* end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    append_bulk(out, std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_RESP_HPP
