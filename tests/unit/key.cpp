// SPDX-License-Identifier: MIT
#include <penstock/key.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using penstock::Key;

std::string text(const Key& key) {
    return std::string(key.view());
}

TEST_CASE("parts are joined by colons") {
    CHECK(text(Key("tenant", 42, "POST /orders")) == "tenant:42:POST /orders");
    CHECK(text(Key("tenant")) == "tenant");
}

TEST_CASE("a colon or backslash inside a part is escaped") {
    CHECK(text(Key("a:b", "c")) == R"(a\:b:c)");
    CHECK(text(Key("a", "b:c")) == R"(a:b\:c)");
    CHECK(text(Key(R"(a\)", "b")) == R"(a\\:b)");
    CHECK(text(Key(R"(a\:b)")) == R"(a\\\:b)");
}

TEST_CASE("different parts give different keys") {
    // Every way to write up to three parts with the bytes that the joining uses itself.
    std::vector<std::string> parts{""};
    for (std::size_t i = 0; parts.size() < 40; ++i) {
        for (const char byte : {'a', ':', '\\'}) {
            parts.push_back(parts[i] + byte);
        }
    }
    std::set<std::string> keys;
    std::size_t made = 0;
    for (const std::string& first : parts) {
        keys.insert(text(Key(first)));
        ++made;
        for (const std::string& second : parts) {
            keys.insert(text(Key(first, second)));
            ++made;
            for (const std::string& third : parts) {
                keys.insert(text(Key(first, second, third)));
                ++made;
            }
        }
    }
    CHECK(keys.size() == made);
}

TEST_CASE("an empty part counts") {
    CHECK(text(Key("")).empty());
    CHECK(text(Key("", "")) == ":");
    CHECK(text(Key("a", "")) == "a:");
    CHECK(text(Key("", "a")) == ":a");
    CHECK(Key("a", "", "b") != Key("a", "b"));
}

TEST_CASE("integers of every size and sign are written in full") {
    CHECK(text(Key(0)) == "0");
    CHECK(text(Key(-1, 1U)) == "-1:1");
    CHECK(text(Key((std::numeric_limits<std::int64_t>::min)())) == "-9223372036854775808");
    CHECK(text(Key((std::numeric_limits<std::uint64_t>::max)())) == "18446744073709551615");
    CHECK(text(Key(std::int8_t{-128}, std::uint8_t{200}, std::uint16_t{65'535})) == "-128:200:65535");
}

TEST_CASE("a char is text, not a number") {
    CHECK(text(Key('a', 7)) == "a:7");
    CHECK(text(Key(':')) == R"(\:)");
    CHECK(text(Key('\0')) == "\0"s);
    CHECK(Key('7') == Key(7));
}

TEST_CASE("a part may be any kind of text, and a key of its own") {
    const std::string owned = "owned";
    const std::string_view viewed = "viewed";
    char buffer[] = "buffer";
    CHECK(text(Key("literal", owned, viewed, buffer)) == "literal:owned:viewed:buffer");
    CHECK(text(Key("tenant", Key("a", "b"))) == R"(tenant:a\:b)");
}

TEST_CASE("a part may hold any bytes, NUL among them") {
    CHECK(text(Key("a\0b"sv, "c")) == "a\0b:c"s);
    CHECK(Key("a\0b"sv) != Key("a"));
    CHECK(text(Key("gr\xc3\xbc\xc3\x9f", "{x}")) == "gr\xc3\xbc\xc3\x9f:{x}");
    CHECK(text(Key("\xff\x80"sv)) == "\xff\x80");
}

TEST_CASE("a key may be longer than the room it has inside") {
    for (std::size_t size = 90; size <= 100; ++size) {
        CAPTURE(size);
        const std::string part(size, 'x');
        CHECK(text(Key(part)) == part);
        CHECK(text(Key(part, 7)) == part + ":7");
        CHECK(text(Key(std::string(size, ':'))) == [&] {
            std::string escaped;
            for (std::size_t i = 0; i < size; ++i) {
                escaped += "\\:";
            }
            return escaped;
        }());
    }
    const std::string large(std::size_t{64} * 1024, 'y');
    CHECK(text(Key("tenant", large, 7)) == "tenant:" + large + ":7");
}

TEST_CASE_TEMPLATE("a copy of a key is a key of its own",
                   Size,
                   std::integral_constant<std::size_t, 3>,
                   std::integral_constant<std::size_t, 96>,
                   std::integral_constant<std::size_t, 97>,
                   std::integral_constant<std::size_t, 5000>) {
    const std::string part(Size::value, 'x');
    Key key(part);
    const Key copy = key;
    CHECK(copy == key);
    CHECK(copy.view().data() != key.view().data());

    key = Key("other");
    CHECK(text(key) == "other");
    CHECK(text(copy) == part);
    key = copy;
    CHECK(key == copy);
}

TEST_CASE("a copy of one key is that key, not a key of one part") {
    const Key key("a:b");
    const Key copy(key);
    CHECK(text(copy) == R"(a\:b)");
}

TEST_CASE("a key goes where any string goes") {
    const auto size = [](std::string_view bytes) { return bytes.size(); };
    CHECK(size(Key("tenant", 42)) == 9);
    CHECK(std::is_convertible_v<Key, std::string_view>);
    CHECK_FALSE(std::is_convertible_v<const char*, Key>);
}

}  // namespace
