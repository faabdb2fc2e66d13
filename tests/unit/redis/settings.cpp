// SPDX-License-Identifier: MIT
// What a connection begins with.
#include <penstock/redis/settings.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

namespace {

using penstock::redis::Greeting;
using penstock::redis::greeting_of;
using penstock::redis::parse_url;
using penstock::redis::Settings;

/// The commands of a greeting, one per line.
std::string commands(const Settings& settings) {
    const Greeting greeting = greeting_of(settings, settings.meta);
    std::string line;
    std::string lines;
    std::size_t at = 0;
    while (at < greeting.text.size()) {
        const std::size_t end = greeting.text.find("\r\n", at);
        const std::string part = greeting.text.substr(at, end - at);
        if (part[0] == '*') {
            lines += lines.empty() ? "" : "\n";
            line.clear();
        } else if (part[0] != '$') {
            lines += (line.empty() ? "" : " ") + part;
            line = part;
        }
        at = end + 2;
    }
    return lines;
}

Settings of(const std::string& url) {
    return {.target = parse_url(url)};
}

TEST_CASE("a server that asks for nothing is asked whether it is well") {
    CHECK(commands(of("redis://h")) == "PING");
}

TEST_CASE("who we are comes first, then the database, then the name") {
    Settings settings = of("redis://me:secret@h/3");
    settings.client_name = "gateway-1";
    CHECK(commands(settings) == "AUTH me secret\nSELECT 3\nCLIENT SETNAME gateway-1\nPING");
    CHECK(commands(of("redis://:secret@h")) == "AUTH secret\nPING");
}

TEST_CASE("a server that refuses the name is good enough, one that refuses the password is not") {
    Settings settings = of("redis://:secret@h");
    settings.client_name = "gateway-1";
    const Greeting greeting = greeting_of(settings, settings.meta);
    REQUIRE(greeting.answers.size() == 3);
    CHECK(greeting.answers[0].required);
    CHECK_FALSE(greeting.answers[1].required);
    CHECK(greeting.answers[2].required);
}

TEST_CASE("the meta is asked for in the place of the question how the server is") {
    Settings settings = of("redis://h");
    settings.meta_key = "p:meta";
    settings.meta = {.buckets = 4, .secret = 5};
    const Greeting greeting = greeting_of(settings, settings.meta);
    REQUIRE(greeting.answers.size() == 1);
    CHECK(greeting.answers[0].is_meta);
    CHECK(greeting.text.find("1 4 5") != std::string::npos);
    CHECK(greeting.text.find("p:meta") != std::string::npos);
}

}  // namespace
