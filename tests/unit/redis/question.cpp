// SPDX-License-Identifier: MIT
// How a question is written, byte for byte, and that layouts and names find their own places.
#include <penstock/redis/question.hpp>

#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>

namespace {

using penstock::Decision;
using penstock::FixedWindow;
using penstock::Op;
using penstock::plan;
using penstock::StoreError;
using penstock::TokenBucket;
using penstock::redis::Context;
using penstock::redis::Layout;
using penstock::redis::Meta;
using penstock::redis::Question;

constexpr Meta meta{.buckets = 16, .secret = 42};
constexpr TokenBucket bucket{.capacity = 10, .refill = penstock::per_second(1)};

/// What is sent, with the name of the script as <sha> and other bytes than text as <hex>.
template <class Algorithm>
std::string written(const Context<Algorithm>& context, const Algorithm& algorithm, penstock::Micros now) {
    const auto its_plan = plan(algorithm);
    const Question<Algorithm> question(context,
                                       {.op = Op::check, .key = "user:{42}", .plan = &its_plan, .now = now, .cost = 3});
    std::string out;
    question.write(out, meta);
    const std::size_t sha = out.find(question.script().sha1);
    REQUIRE(sha != std::string::npos);
    out.replace(sha, 40, "<sha>");
    std::ostringstream text;
    for (const char byte : out) {
        if ((byte >= ' ' && byte <= '~') || byte == '\n') {
            text << byte;
        } else if (byte != '\r') {
            text << '<' << std::hex << std::setw(2) << std::setfill('0')
                 << static_cast<unsigned>(static_cast<unsigned char>(byte)) << '>';
        }
    }
    return text.str();
}

TEST_CASE("the bytes of a question of the packed layout") {
    CHECK(written(Context<TokenBucket>(Layout::packed, "penstock", ""), bucket, penstock::store_time) ==
          "*6\n$7\nEVALSHA\n$40\n<sha>\n$1\n1\n$12\npenstock:{e}\n"
          "$12\n<d0><a5>d<a6><a6><90><b7><84>&<06><b2>_\n"
          "$36\n<00><03><00><00><00><00><00><00>\n"
          "<00><00><00><00><00><00><01><00><00><00><00><00><00>@B<0f><00><00><00><00><14><00><00><00><00><00><00>\n");
    CHECK(written(Context<TokenBucket>(Layout::packed, "penstock", ""), bucket, 1'000'000) ==
          "*6\n$7\nEVALSHA\n$40\n<sha>\n$1\n1\n$13\npenstock:{e}t\n"
          "$12\n<d0><a5>d<a6><a6><90><b7><84>&<06><b2>_\n"
          "$43\n<00><03><00><00><00><00><00><00>@B<0f><00><00><00><00>\n"
          "<00><00><00><00><00><00><01><00><00><00><00><00><00>@B<0f><00><00><00><00><14><00><00><00><00><00><00>\n");
}

TEST_CASE("the bytes of a question of the layout of a key each") {
    CHECK(written(Context<TokenBucket>(Layout::per_key, "penstock", ""), bucket, penstock::store_time) ==
          "*5\n$7\nEVALSHA\n$40\n<sha>\n$1\n1\n$31\npenstock:{user:%7B42%7D}:bucket\n"
          "$36\n<00><03><00><00><00><00><00><00>\n"
          "<00><00><00><00><00><00><01><00><00><00><00><00><00>@B<0f><00><00><00><00><14><00><00><00><00><00><00>\n");
    CHECK(written(Context<FixedWindow>(Layout::per_key, "other", "named"),
                  FixedWindow{.limit = 10, .window = std::chrono::seconds{1}},
                  penstock::store_time) ==
          "*5\n$7\nEVALSHA\n$40\n<sha>\n$1\n1\n$27\nother:{user:%7B42%7D}:named\n"
          "$43\n<00><03><00><00><00><00><00><00>\n"
          "<00><00><00><00><00><00>@B<0f><00><00><00><00><00><00><00><00><00><00><00><00><00><00><00><00> "
          "<00><94><00><00><00><00><00><00>\n");
}

TEST_CASE("a question without an answer is its error") {
    const Context<TokenBucket> context(Layout::packed, "penstock", "");
    const auto its_plan = plan(bucket);
    const Question<TokenBucket> question(context, {.op = Op::check, .key = "key", .plan = &its_plan, .cost = 1});
    CHECK(question.key() == "key");
    Decision decision{.allowed = true, .limit = 7};
    CHECK(question.answer(decision) == StoreError::protocol_error);
    CHECK(decision.limit == 7);
}

}  // namespace
