// SPDX-License-Identifier: MIT
// Key: joins parts into one key without ambiguity.
#ifndef PENSTOCK_KEY_HPP
#define PENSTOCK_KEY_HPP

#include <penstock/config.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

/// A key made of parts, such as Key("tenant", 42, "POST /orders"). Different parts give different keys: parts are
/// joined by ':', and a ':' or '\' inside a part is written with a '\' before it. A part is text of any bytes, a char,
/// or an integer; anything else does not compile. Converts to std::string_view, which is valid as long as the key. No
/// allocation up to 96 bytes. A limiter takes any string as a key; do not mix joined and other keys in one limiter.
class Key {
public:
    template <class First, class... Rest>
        requires(!std::same_as<First, Key>)
    explicit Key(const First& first, const Rest&... rest) {
        add(first);
        ((push(separator), add(rest)), ...);
    }

    Key(const Key&) = default;
    Key& operator=(const Key&) = default;
    ~Key() = default;

    [[nodiscard]] std::string_view view() const noexcept {
        return long_.empty() ? std::string_view(short_, size_) : std::string_view(long_);
    }

    operator std::string_view() const noexcept { return view(); }

    friend bool operator==(const Key& a, const Key& b) noexcept { return a.view() == b.view(); }

private:
    static constexpr std::size_t short_capacity = 96;
    static constexpr char separator = ':';
    static constexpr char escape = '\\';

    template <class Part>
    void add(const Part& part) {
        if constexpr (std::convertible_to<const Part&, std::string_view>) {
            add_text(part);
        } else if constexpr (std::same_as<Part, char>) {
            add_text({&part, 1});
        } else {
            static_assert(std::integral<Part> && !std::same_as<Part, bool>,
                          "penstock: a part of a Key is text, a char or an integer");
            add_number(part);
        }
    }

    void add_number(std::integral auto number) {
        char digits[24];
        const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, number);
        for (const char* digit = digits; digit != end.ptr; ++digit) {
            push(*digit);
        }
    }

    void add_text(std::string_view text) {
        for (const char byte : text) {
            if (byte == separator || byte == escape) {
                push(escape);
            }
            push(byte);
        }
    }

    void push(char byte) {
        if (size_ < short_capacity) {
            short_[size_++] = byte;
            return;
        }
        if (long_.empty()) {
            long_.assign(short_, size_);
        }
        long_.push_back(byte);
    }

    char short_[short_capacity];
    std::size_t size_ = 0;
    std::string long_;  // empty until the key outgrows the buffer
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_KEY_HPP
