// SPDX-License-Identifier: MIT
// RedisStorage without a server: its options, and what is answered while there is none.
#include <penstock/storage/redis.hpp>

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;

constexpr TokenBucket bucket{.capacity = 5, .refill = penstock::per_second(2)};

/// A port where nobody listens.
const std::string nowhere = "redis://127.0.0.1:1";

/// The text with which options are refused.
std::string refusal_of(const RedisStorage::Options& options) {
    try {
        const RedisStorage storage(options);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "taken";
}

TEST_CASE("every option out of range is refused, by name, with what is allowed") {
    CHECK(refusal_of({.timeout = 0us}) == "RedisStorage.timeout is 0 us: allowed is 1 us to 60000000 us");
    CHECK(refusal_of({.timeout = 61s}) == "RedisStorage.timeout is 61000000 us: allowed is 1 us to 60000000 us");
    CHECK(refusal_of({.connect_timeout = 999us}) ==
          "RedisStorage.connect_timeout is 999 us: allowed is 1000 us to 60000000 us");
    CHECK(refusal_of({.stall_timeout = 2h}) ==
          "RedisStorage.stall_timeout is 7200000000 us: allowed is 1000 us to 3600000000 us");
    CHECK(refusal_of({.longest_wait = 0us}) ==
          "RedisStorage.longest_wait is 0 us: allowed is 1000 us to 3600000000 us");
    CHECK(refusal_of({.expected_entries = 0}) == "RedisStorage.expected_entries is 0: allowed is 1 to 274877906944");
    CHECK(refusal_of({.max_in_flight = 0}) == "RedisStorage.max_in_flight is 0: allowed is 1 to 1048576");
    for (const char* prefix : {"", "a{b", "a}b", "a b", "a\n"}) {
        CHECK(refusal_of({.prefix = prefix}) ==
              "RedisStorage.prefix is '" + std::string(prefix) +
                  "': allowed is one or more ASCII characters but blanks, braces and control characters");
    }
}

TEST_CASE("a malformed url is refused, and its password not told") {
    const std::string text = refusal_of({.url = "redis://me:hunter2@h:99999"});
    CHECK(text.find("RedisStorage.url") != std::string::npos);
    CHECK(text.find("hunter2") == std::string::npos);
}

TEST_CASE("a server that is not there is no error; the policy decides, at once") {
    Limiter open{bucket, RedisStorage{{.url = nowhere, .timeout = 20s}}};
    Limiter closed{bucket, RedisStorage{{.url = nowhere, .timeout = 20s, .on_failure = penstock::Deny{}}}};
    CHECK(open.check("a") == Decision{.allowed = true, .source = Source::fail_open});
    CHECK(closed.check("a") == Decision{.allowed = false, .retry_after = 1s, .source = Source::fail_closed});
    CHECK(open.storage().stats().ended[static_cast<std::size_t>(StoreError::unavailable)] == 1);
}

TEST_CASE("copies count together") {
    const RedisStorage storage{{.url = nowhere}};
    Limiter one{bucket, storage};
    Limiter other{penstock::FixedWindow{.limit = 1, .window = 1s}, storage};
    static_cast<void>(one.check("a"));
    static_cast<void>(other.check("a"));
    const auto& ended = storage.stats().ended;
    std::uint64_t all = 0;
    for (const std::uint64_t count : ended) {
        all += count;
    }
    CHECK(all == 2);
}

TEST_CASE("of its options a single one may be given") {
    CHECK(RedisStorage::Options{}.timeout == 5ms);
    CHECK(RedisStorage::Options{.prefix = "p"}.expected_entries == 1'000'000);
    CHECK(RedisStorage::Options{.layout = penstock::Layout::per_key}.prefix == "penstock");
    CHECK(RedisStorage::Options{.name = "n"}.max_in_flight == 10'000);
}

}  // namespace
