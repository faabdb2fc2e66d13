// SPDX-License-Identifier: MIT
// The ACL line of README.md is all that a gateway needs.
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::Layout;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::Source;
using penstock::TokenBucket;

/// The words of the line "ACL SETUSER ..." in the README.
std::vector<std::string> line_of_readme() {
    std::ifstream readme(std::filesystem::path(__FILE__).parent_path() / "../../README.md");
    std::string line;
    while (std::getline(readme, line)) {
        if (const auto at = line.find("ACL SETUSER "); at != std::string::npos) {
            std::istringstream words(line.substr(at));
            std::vector<std::string> all;
            for (std::string word; words >> word;) {
                all.push_back(word);
            }
            return all;
        }
    }
    return {};
}

/// How many of the operations were decided by a store that knows this user only.
int decided(const support::RedisServer& server, Layout layout) {
    Limiter limiter{TokenBucket{.capacity = 5, .refill = penstock::per_hour(1)},
                    RedisStorage{{.url = "redis://penstock:secret@127.0.0.1:" + std::to_string(server.port()),
                                  .timeout = 10s,
                                  .client_name = "gateway",
                                  .layout = layout,
                                  .on_failure = penstock::Deny{}}}};
    int count = 0;
    const auto add = [&count](const Decision& decision) { count += decision.source == Source::store ? 1 : 0; };
    add(limiter.check("a"));
    add(limiter.check("a", 9));
    add(limiter.peek("a"));
    add(limiter.refund("a", 1));
    add(limiter.charge("a", 2));
    add(limiter.reserve("a", 100h, 4).decision);
    limiter.reset("a");
    add(limiter.peek("a"));
    return limiter.peek("a", 0).remaining == 5 ? count : -1;
}

TEST_CASE("the ACL line of the README suffices for every operation") {
    const support::RedisServer server;
    const std::vector<std::string> line = line_of_readme();
    REQUIRE(line.size() > 10);
    REQUIRE(line[2] == "penstock");
    support::RedisClient client(server.port());
    client.add(line);
    client.flush();
    CHECK(client.receive().text == "OK");
    CHECK(decided(server, Layout::packed) == 7);
    CHECK(decided(server, Layout::per_key) == 7);
}

}  // namespace
