// SPDX-License-Identifier: MIT
#include <penstock/redis/layout.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using penstock::redis::append_bucket_key;
using penstock::redis::append_client_key;
using penstock::redis::bucket_count;
using penstock::redis::name_hash;
using penstock::redis::packed_place;
using penstock::redis::PackedPlace;
using penstock::redis::Time;

namespace {

constexpr std::uint64_t secret = 0x0123456789abcdef;

std::string bucket_key(std::uint64_t bucket, Time time = Time::server) {
    std::string key;
    append_bucket_key(key, "p", bucket, time);
    return key;
}

std::string client_key(std::string_view client, std::string_view name = "n") {
    std::string key;
    append_client_key(key, "p", client, name);
    return key;
}

std::string hex(std::string_view bytes) {
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += "0123456789abcdef"[value >> 4];
        text += "0123456789abcdef"[value & 15U];
    }
    return text;
}

}  // namespace

TEST_CASE("there are as many buckets as hold 33 to 64 entries each") {
    CHECK(bucket_count(0) == 1);
    CHECK(bucket_count(64) == 1);
    CHECK(bucket_count(65) == 2);
    CHECK(bucket_count(128) == 2);
    CHECK(bucket_count(129) == 4);
    CHECK(bucket_count(1'000'000) == 16'384);
    CHECK(bucket_count(50'000'000) == 1'048'576);
    CHECK(bucket_count((std::uint64_t{1} << 38) - 1) == std::uint64_t{1} << 32);
    CHECK(bucket_count(~std::uint64_t{0}) == std::uint64_t{1} << 32);
}

TEST_CASE("a client's place is the same in every process and every version") {
    const PackedPlace place = packed_place("user:42", secret, name_hash("orders", secret), 16'384);
    CHECK(place.bucket == 15'906);
    CHECK(hex(place.name()) == "e8c61908019f83b29aaa1e12");
}

TEST_CASE("all entries of a client stand in one bucket, each in its own field") {
    const PackedPlace orders = packed_place("user:42", secret, name_hash("orders", secret), 16'384);
    const PackedPlace logins = packed_place("user:42", secret, name_hash("logins", secret), 16'384);
    CHECK(orders.bucket == logins.bucket);
    CHECK(orders.name() != logins.name());
    CHECK(orders.name().size() == 12);
}

TEST_CASE("clients spread evenly over the buckets, and no two share a field") {
    constexpr std::uint64_t buckets = 64;
    std::vector<int> clients(buckets);
    std::set<std::pair<std::uint64_t, std::string>> places;
    for (int i = 0; i < 64'000; ++i) {
        const PackedPlace place = packed_place("client-" + std::to_string(i), secret, name_hash("n", secret), buckets);
        ++clients.at(place.bucket);
        places.emplace(place.bucket, place.name());
    }
    CHECK(places.size() == 64'000);
    for (const int count : clients) {
        CHECK(count > 850);
        CHECK(count < 1150);
    }
}

TEST_CASE("one bucket takes all") {
    CHECK(packed_place("a", secret, 0, 1).bucket == 0);
    CHECK(packed_place("b", secret, 0, 1).bucket == 0);
}

TEST_CASE("places cannot be told without the secret") {
    CHECK(packed_place("a", 1, name_hash("n", 1), 16'384).name() !=
          packed_place("a", 2, name_hash("n", 2), 16'384).name());
}

TEST_CASE("a bucket's key is short, and that of another clock is another") {
    CHECK(bucket_key(0) == "p:{0}");
    CHECK(bucket_key(31) == "p:{v}");
    CHECK(bucket_key(32) == "p:{10}");
    CHECK(bucket_key(16'383) == "p:{fvv}");
    CHECK(bucket_key(~std::uint64_t{0}) == "p:{fvvvvvvvvvvvv}");
    CHECK(bucket_key(7, Time::limiter) == "p:{7}t");
}

TEST_CASE("a client's key shows the client") {
    CHECK(client_key("user:42", "orders") == "p:{user:42}:orders");
    CHECK(client_key(std::string_view("\0\xff\n", 3)) == std::string("p:{\0\xff\n}:n", 9));
}

TEST_CASE("no client reaches another's slot or key") {
    CHECK(client_key("}{") == "p:{%7D%7B}:n");
    CHECK(client_key("a}:b") == "p:{a%7D:b}:n");
    CHECK(client_key("%7D") == "p:{%257D}:n");
    CHECK(client_key("") == "p:{%}:n");
    CHECK(client_key("%") == "p:{%25}:n");

    const std::vector<std::string> pieces{"", "{", "}", "%", "a", "%7B", "}:n", "{}", ":"};
    std::set<std::string> clients;
    std::set<std::string> keys;
    for (const std::string& first : pieces) {
        for (const std::string& second : pieces) {
            const std::string key = client_key(first + second);
            clients.insert(first + second);
            keys.insert(key);
            const std::size_t tag = key.find('{');
            CHECK(tag == 2);
            CHECK(key.find('}') == key.rfind('}'));
            CHECK(key.find('}') > tag + 1);
        }
    }
    CHECK(keys.size() == clients.size());
}
