// SPDX-License-Identifier: MIT
// Which node has which slots, as a cluster tells it.
#include <penstock/redis/slot_map.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using penstock::redis::parse_slots;
using penstock::redis::ReplyReader;
using penstock::redis::SlotMap;
using penstock::redis::SlotRange;

std::optional<std::vector<SlotRange>> slots(std::string_view reply) {
    ReplyReader reader;
    REQUIRE(reader.feed(reply));
    REQUIRE(reader.next() == ReplyReader::Status::reply);
    return parse_slots(reader.reply());
}

TEST_CASE("the masters of all ranges are read, the replicas and what else is told passed over") {
    const auto ranges = slots("*2\r\n"
                              "*4\r\n:0\r\n:5460\r\n"
                              "*4\r\n$9\r\n127.0.0.1\r\n:7001\r\n$4\r\nid-1\r\n*2\r\n$8\r\nhostname\r\n$1\r\nh\r\n"
                              "*3\r\n$9\r\n127.0.0.1\r\n:7004\r\n$4\r\nid-4\r\n"
                              "*3\r\n:5461\r\n:16383\r\n"
                              "*3\r\n$3\r\n::1\r\n:7002\r\n$4\r\nid-2\r\n");
    REQUIRE(ranges.has_value());
    CHECK(*ranges == std::vector<SlotRange>{{0, 5460, "127.0.0.1", 7001}, {5461, 16383, "::1", 7002}});
}

TEST_CASE("a node that does not know its own name is where it was asked") {
    for (const char* host : {"$0\r\n\r\n", "$-1\r\n", "$1\r\n?\r\n"}) {
        const auto ranges = slots("*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n" + std::string(host) + ":7001\r\n$4\r\nid-1\r\n");
        REQUIRE(ranges.has_value());
        CHECK(*ranges == std::vector<SlotRange>{{0, 1, "", 7001}});
    }
}

TEST_CASE("a cluster without slots has none") {
    REQUIRE(slots("*0\r\n").has_value());
    CHECK(slots("*0\r\n")->empty());
}

TEST_CASE("what is no slot map is told apart") {
    for (const char* reply : {"+OK\r\n",
                              ":1\r\n",
                              "-ERR This instance has cluster support disabled\r\n",
                              "*1\r\n:1\r\n",
                              "*1\r\n*0\r\n",
                              "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
                              "*1\r\n*3\r\n:-1\r\n:5\r\n*2\r\n$1\r\nh\r\n:1\r\n",
                              "*1\r\n*3\r\n:6\r\n:5\r\n*2\r\n$1\r\nh\r\n:1\r\n",
                              "*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$1\r\nh\r\n:0\r\n",
                              "*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$1\r\nh\r\n:65536\r\n",
                              "*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n:1\r\n:1\r\n",
                              "*1\r\n*2\r\n:0\r\n:5\r\n",
                              "*2\r\n*3\r\n:0\r\n:5\r\n*2\r\n$1\r\nh\r\n:1\r\n+x\r\n"}) {
        CAPTURE(reply);
        CHECK_FALSE(slots(reply).has_value());
    }
}

TEST_CASE("a map tells the node of every slot, or that it is nobody's") {
    SlotMap map;
    CHECK(map.node_of(0) == SlotMap::nobody);
    map.assign(0, 100, 1);
    map.assign(50, 16383, 2);
    CHECK(map.node_of(49) == 1);
    CHECK(map.node_of(50) == 2);
    CHECK(map.node_of(16383) == 2);
    CHECK(map.covered() == 16384);
    map.clear();
    CHECK(map.covered() == 0);
}

}  // namespace
