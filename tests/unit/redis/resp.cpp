// SPDX-License-Identifier: MIT
#include <penstock/redis/resp.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using penstock::redis::append_array_header;
using penstock::redis::append_bulk;

template <class Part>
std::string bulk(const Part& part) {
    std::string out;
    append_bulk(out, part);
    return out;
}

std::string header(std::size_t arguments) {
    std::string out;
    append_array_header(out, arguments);
    return out;
}

template <class Part>
concept Argument = requires(std::string& out, Part part) {
    append_bulk(out, part);
};

TEST_CASE("a command is a header and its arguments, one after the other") {
    std::string out = "before";
    append_array_header(out, 4);
    append_bulk(out, "EVALSHA");
    append_bulk(out, "{client}"s);
    append_bulk(out, 1);
    append_bulk(out, ""sv);
    CHECK(out == "before*4\r\n$7\r\nEVALSHA\r\n$8\r\n{client}\r\n$1\r\n1\r\n$0\r\n\r\n");
}

TEST_CASE("an argument may hold any bytes") {
    CHECK(bulk("a\0\r\n$3\xff"sv) == "$7\r\na\0\r\n$3\xff\r\n"s);
    CHECK(bulk(std::string_view{}) == "$0\r\n\r\n");
    const std::string large(100'000, '\n');
    CHECK(bulk(large) == "$100000\r\n" + large + "\r\n");
}

TEST_CASE("a number is written in full, whatever its size and sign") {
    CHECK(bulk(0) == "$1\r\n0\r\n");
    CHECK(bulk(-1) == "$2\r\n-1\r\n");
    CHECK(bulk(std::uint8_t{200}) == "$3\r\n200\r\n");
    CHECK(bulk(std::int8_t{-128}) == "$4\r\n-128\r\n");
    CHECK(bulk((std::numeric_limits<std::int64_t>::min)()) == "$20\r\n-9223372036854775808\r\n");
    CHECK(bulk((std::numeric_limits<std::uint64_t>::max)()) == "$20\r\n18446744073709551615\r\n");
}

TEST_CASE("a header counts as far as sizes go") {
    CHECK(header(0) == "*0\r\n");
    CHECK(header(10) == "*10\r\n");
    CHECK(header((std::numeric_limits<std::uint64_t>::max)()) == "*18446744073709551615\r\n");
}

TEST_CASE("what is neither text nor a whole number is no argument") {
    CHECK(Argument<const char*>);
    CHECK(Argument<std::string>);
    CHECK(Argument<long long>);
    CHECK_FALSE(Argument<bool>);
    CHECK_FALSE(Argument<char>);
    CHECK_FALSE(Argument<double>);
}

TEST_CASE("a buffer with room is written to in place") {
    std::string out;
    out.reserve(256);
    const char* begin = out.data();
    append_array_header(out, 2);
    append_bulk(out, std::string_view("a key of some length, longer than a short string"));
    append_bulk(out, 123'456'789);
    CHECK(out.data() == begin);
}

TEST_CASE("any buffer with a string's append will do") {
    struct Counter {
        std::size_t size = 0;
        void append(const char*, std::size_t count) { size += count; }
    };
    Counter counter;
    append_array_header(counter, 2);
    append_bulk(counter, "GET");
    append_bulk(counter, 42);
    CHECK(counter.size == "*2\r\n$3\r\nGET\r\n$2\r\n42\r\n"sv.size());
}

TEST_CASE("a whole command is its header and its arguments") {
    std::string out;
    penstock::redis::append_command(out, {"SCRIPT", "LOAD", "return 1"});
    CHECK(out == "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n");
}

}  // namespace
