// SPDX-License-Identifier: MIT
// Bytes become replies, however they are cut.
#include <penstock/redis/hiredis.hpp>

#include "../../support/random.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::literals;
using penstock::redis::Reply;
using penstock::redis::ReplyNode;
using penstock::redis::ReplyReader;
using Status = ReplyReader::Status;
using Type = ReplyNode::Type;

/// A reply as one line: "[1 'two' -ERR three nil]".
std::string line(const Reply& reply, std::size_t& at) {
    const ReplyNode& node = reply.nodes.at(at++);
    switch (node.type) {
    case Type::nil:
        return "nil";
    case Type::integer:
        return std::to_string(node.integer);
    case Type::text:
        return "'" + std::string(reply.text(node)) + "'";
    case Type::error:
        return "-" + std::string(reply.text(node));
    case Type::array:
        break;
    }
    std::string all = "[";
    for (std::int64_t i = 0; i < node.integer; ++i) {
        all += (i > 0 ? " " : "") + line(reply, at);
    }
    return all + "]";
}

/// All replies in what comes in these pieces, or what else is the matter.
std::vector<std::string> replies(const std::vector<std::string_view>& pieces) {
    ReplyReader reader;
    std::vector<std::string> lines;
    for (const std::string_view piece : pieces) {
        if (!reader.feed(piece)) {
            lines.emplace_back("too long");
            return lines;
        }
        for (Status status = reader.next(); status != Status::incomplete; status = reader.next()) {
            if (status == Status::broken) {
                lines.emplace_back("broken");
                return lines;
            }
            std::size_t at = 0;
            lines.push_back(line(reader.reply(), at));
            CHECK(at == reader.reply().nodes.size());
        }
    }
    return lines;
}

constexpr std::string_view stream = "*3\r\n:1\r\n:-2\r\n:9007199254740992\r\n"
                                    "-NOSCRIPT No matching script.\r\n"
                                    "+OK\r\n"
                                    "$-1\r\n"
                                    "*2\r\n*2\r\n$3\r\na\0b\r\n*0\r\n$0\r\n\r\n"
                                    ":7\r\n"sv;

const std::vector<std::string> expected{
    "[1 -2 9007199254740992]", "-NOSCRIPT No matching script.", "'OK'", "nil", "[['a\0b' []] '']"s, "7"};

TEST_CASE("every kind of reply is read") {
    CHECK(replies({stream}) == expected);
}

TEST_CASE("it does not matter where a stream is cut") {
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
        CHECK(replies({stream.substr(0, cut), stream.substr(cut)}) == expected);
    }
    std::vector<std::string_view> bytes;
    for (std::size_t i = 0; i < stream.size(); ++i) {
        bytes.push_back(stream.substr(i, 1));
    }
    CHECK(replies(bytes) == expected);
}

TEST_CASE("garbage is told apart from replies") {
    CHECK(replies({"HTTP/1.1 400 Bad Request\r\n\r\n"}) == std::vector<std::string>{"broken"});
    CHECK(replies({":1\r\n", "?\r\n"}) == std::vector<std::string>{"1", "broken"});
}

TEST_CASE("a reply that is longer than any that is asked for is refused while it comes") {
    const std::string piece(100'000, 'x');
    std::vector<std::string_view> pieces{"$67108864\r\n"};
    pieces.insert(pieces.end(), ReplyReader::longest / piece.size() + 1, piece);
    CHECK(replies(pieces) == std::vector<std::string>{"too long"});
}

TEST_CASE("a reply of too many parts is refused while it comes, though each is small") {
    std::string numbers;
    for (int i = 0; i < 10'000; ++i) {
        numbers += ":1\r\n";
    }
    ReplyReader reader;
    REQUIRE(reader.feed("*16777216\r\n"));
    int fed = 0;
    while (fed < 100 && reader.feed(numbers)) {
        CHECK(reader.next() == Status::incomplete);
        ++fed;
    }
    CHECK(fed < 40);
    CHECK(reader.next() == Status::broken);
}

TEST_CASE("after a reset a reader begins anew") {
    ReplyReader reader;
    CHECK(reader.feed("*3\r\n:1\r\n"));
    CHECK(reader.next() == Status::incomplete);
    reader.reset();
    CHECK(reader.feed(":5\r\n"));
    CHECK(reader.next() == Status::reply);
    CHECK(reader.reply().nodes.size() == 1);
    CHECK(reader.reply().nodes.front().integer == 5);
}

TEST_CASE("no bytes do harm") {
    support::Random random(7);
    for (int run = 0; run < 20'000; ++run) {
        std::string bytes(random.below(60), '\0');
        for (char& byte : bytes) {
            byte =
                random.below(3) == 0 ? static_cast<char>(random.below(256)) : "*$:+-0123456789\r\n"[random.below(17)];
        }
        static_cast<void>(replies({bytes}));
    }
}

}  // namespace
