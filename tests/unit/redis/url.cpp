// SPDX-License-Identifier: MIT
#include <penstock/redis/url.hpp>

#include <doctest/doctest.h>

#include "../../support/random.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using penstock::redis::Endpoint;
using penstock::redis::parse_url;
using penstock::redis::Target;
using Kind = penstock::redis::Target::Kind;

std::string refusal(std::string_view url) {
    try {
        static_cast<void>(parse_url(url));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "(not refused)";
}

Endpoint at(std::string host, std::uint16_t port = 6379) {
    return {.host = std::move(host), .port = port};
}

Endpoint unix_socket(std::string path) {
    return {.port = 0, .path = std::move(path)};
}

constexpr std::string_view host_wrong =
    ": allowed is a name or address of letters, digits, '-', '.' and '_', or an IPv6 address in brackets";

std::string host_is(std::string_view value) {
    return "RedisStorage.url, host is " + std::string(value) + std::string(host_wrong);
}

std::string credential_wrong(std::string_view part) {
    return "RedisStorage.url, " + std::string(part) +
           " is ***: allowed is text with blanks, control characters and any of %/?#@[] as % and two hex digits";
}

TEST_CASE("a url names a server, and what it leaves out has a default") {
    CHECK(parse_url("redis://localhost") == Target{.endpoints = {at("localhost")}});
    CHECK(parse_url("redis://localhost/") == Target{.endpoints = {at("localhost")}});
    CHECK(parse_url("redis://10.0.0.1:7000/3") == Target{.database = 3, .endpoints = {at("10.0.0.1", 7000)}});
    CHECK(parse_url("redis://h:1").endpoints == std::vector{at("h", 1)});
    CHECK(parse_url("redis://h:65535").endpoints == std::vector{at("h", 65'535)});
    CHECK(parse_url("redis://h/2147483647").database == 2'147'483'647);

    const Target target = parse_url("redis://h");
    CHECK(target.kind == Kind::single);
    CHECK_FALSE(target.tls);
}

TEST_CASE("rediss asks for TLS") {
    CHECK(parse_url("rediss://u:p@h:6380/1") ==
          Target{.tls = true, .user = "u", .password = "p", .database = 1, .endpoints = {at("h", 6380)}});
    CHECK(parse_url("rediss+cluster://a:1,b") ==
          Target{.kind = Kind::cluster, .tls = true, .endpoints = {at("a", 1), at("b")}});
    CHECK(parse_url("rediss+ring://u@a,b/2") ==
          Target{.kind = Kind::ring, .tls = true, .user = "u", .database = 2, .endpoints = {at("a"), at("b")}});
    CHECK_FALSE(parse_url("redis+cluster://a").tls);
    CHECK_FALSE(parse_url("redis+ring://a").tls);
}

TEST_CASE("user and password are optional, each") {
    CHECK(parse_url("redis://user:secret@h") == Target{.user = "user", .password = "secret", .endpoints = {at("h")}});
    CHECK(parse_url("redis://:secret@h") == Target{.password = "secret", .endpoints = {at("h")}});
    CHECK(parse_url("redis://user@h") == Target{.user = "user", .endpoints = {at("h")}});
    CHECK(parse_url("redis://user:@h") == Target{.user = "user", .endpoints = {at("h")}});
    CHECK(parse_url("redis://@h") == Target{.endpoints = {at("h")}});
}

TEST_CASE("a password may hold colons, and any byte as % and two hex digits") {
    CHECK(parse_url("redis://u:a:b@h").password == "a:b");
    CHECK(parse_url("redis://u%3A:p%40%2f%25%00%fF@h").user == "u:");
    CHECK(parse_url("redis://u%3A:p%40%2f%25%00%fF@h").password == "p@/%\0\xff"s);
    CHECK(parse_url("redis://u:a,b+c=$&!~*@h").password == "a,b+c=$&!~*");
    CHECK(parse_url("redis://u:gr\xc3\xbc\xc3\x9f@h").password == "gr\xc3\xbc\xc3\x9f");
}

TEST_CASE("an IPv6 address stands in brackets") {
    CHECK(parse_url("redis://[::1]").endpoints == std::vector{at("::1")});
    CHECK(parse_url("redis://[2001:DB8::1]:7000/1").endpoints == std::vector{at("2001:db8::1", 7000)});
    CHECK(parse_url("redis://u:p@[::ffff:10.0.0.1]").endpoints == std::vector{at("::ffff:10.0.0.1")});
}

TEST_CASE("a cluster and a ring have several endpoints, in the order of the url") {
    CHECK(parse_url("redis+cluster://u:p@a:7000,b,[::1]:7002") ==
          Target{.kind = Kind::cluster,
                 .user = "u",
                 .password = "p",
                 .endpoints = {at("a", 7000), at("b"), at("::1", 7002)}});
    CHECK(parse_url("redis+cluster://a/0") == Target{.kind = Kind::cluster, .endpoints = {at("a")}});
    CHECK(parse_url("redis+ring://b,a,c:1/2") ==
          Target{.kind = Kind::ring, .database = 2, .endpoints = {at("b"), at("a"), at("c", 1)}});
}

TEST_CASE("a host is one host in either case") {
    CHECK(parse_url("redis+ring://Node-1.Example_A.org,B").endpoints ==
          std::vector{at("node-1.example_a.org"), at("b")});
}

TEST_CASE("a unix socket's path is no longer than an address has room for") {
    const std::string longest = "/" + std::string(102, 'x');
    CHECK(parse_url("unix://" + longest).endpoints == std::vector{unix_socket(longest)});
    CHECK(refusal("unix://" + longest + "x") ==
          "RedisStorage.url, path is of 104 bytes: allowed is one of at most 103");
}

TEST_CASE("a unix socket has a path") {
    CHECK(parse_url("unix:///run/redis.sock") == Target{.endpoints = {unix_socket("/run/redis.sock")}});
    CHECK(parse_url("unix:///run/redis.sock?db=2") ==
          Target{.database = 2, .endpoints = {unix_socket("/run/redis.sock")}});
    CHECK(parse_url("unix:///a%20b%3fc@d:e").endpoints == std::vector{unix_socket("/a b?c@d:e")});
}

TEST_CASE("an unknown scheme is refused, and shown unless it may be more than that") {
    const std::string allowed =
        ": allowed is redis://, redis+cluster://, redis+ring://, the same with rediss for TLS, or unix://";
    CHECK(refusal("http://h") == "RedisStorage.url, scheme is 'http'" + allowed);
    CHECK(refusal("REDIS://h") == "RedisStorage.url, scheme is 'REDIS'" + allowed);
    CHECK(refusal(" redis://h") == "RedisStorage.url, scheme is ' redis'" + allowed);
    CHECK(refusal("://h") == "RedisStorage.url, scheme is ''" + allowed);
    CHECK(refusal("") == "RedisStorage.url, scheme is missing" + allowed);
    CHECK(refusal("localhost:6379") == "RedisStorage.url, scheme is missing" + allowed);
    CHECK(refusal("redis:/h") == "RedisStorage.url, scheme is missing" + allowed);
    CHECK(refusal("user:secret@://h") == "RedisStorage.url, scheme is missing" + allowed);
}

TEST_CASE("a host that is empty or none is refused") {
    CHECK(refusal("redis://") == host_is("''"));
    CHECK(refusal("redis://:6379") == host_is("''"));
    CHECK(refusal("redis:///1") == host_is("''"));
    CHECK(refusal("redis://u:p@") == host_is("''"));
    CHECK(refusal("redis+cluster://a,,b") == host_is("''"));
    CHECK(refusal("redis+ring://a,") == host_is("''"));
    CHECK(refusal("redis://a,b") == host_is("'a,b'"));
    CHECK(refusal("redis://a b") == host_is("'a b'"));
    CHECK(refusal("redis+ring://a, b") == host_is("' b'"));
    CHECK(refusal("redis://a\nb") == host_is("'a?b'"));
    CHECK(refusal("redis://a\0b"sv) == host_is("'a?b'"));
    CHECK(refusal("redis://a%20b") == host_is("'a%20b'"));
    CHECK(refusal("redis://gr\xc3\xbcn") == host_is("'gr??n'"));
    CHECK(refusal("redis://" + std::string(65, '!')) == host_is("'" + std::string(64, '!') + "...'"));
}

TEST_CASE("brackets that are not closed or hold no IPv6 address are refused") {
    CHECK(refusal("redis://[::1") == host_is("a bracket that is not closed"));
    CHECK(refusal("redis+cluster://[::1,[::2]") == host_is("a bracket that is not closed"));
    CHECK(refusal("redis://[::1/0") == host_is("a bracket that is not closed"));
    CHECK(refusal("redis://[]") == host_is("''"));
    CHECK(refusal("redis://[localhost]") == host_is("'localhost'"));
    CHECK(refusal("redis://[10.0.0.1]") == host_is("'10.0.0.1'"));
    CHECK(refusal("redis://[fe80::1%eth0]") == host_is("'fe80::1%eth0'"));
    CHECK(refusal("redis://::1") == host_is("''"));
}

TEST_CASE("a port that is none is refused") {
    const std::string allowed = ": allowed is 1 to 65535";
    CHECK(refusal("redis://h:0") == "RedisStorage.url, port is 0" + allowed);
    CHECK(refusal("redis://h:65536") == "RedisStorage.url, port is 65536" + allowed);
    for (const std::string_view port : {"", "x", "-1", "+1", "1x", "1 ", " 1", "1.0", "0x1", "99999999999", "1:2"}) {
        CAPTURE(port);
        CHECK(refusal("redis://h:" + std::string(port)) == "RedisStorage.url, port is not a port number" + allowed);
    }
    CHECK(refusal("redis://[::1]6379") == "RedisStorage.url, port is not a port number" + allowed);
    CHECK(refusal("redis+ring://a:1,b:x") == "RedisStorage.url, port is not a port number" + allowed);
}

TEST_CASE("a database that is none is refused, in a cluster any but 0") {
    const std::string allowed = ": allowed is 0 to 2147483647";
    CHECK(refusal("redis://h/x") == "RedisStorage.url, database is 'x'" + allowed);
    CHECK(refusal("redis://h/-1") == "RedisStorage.url, database is '-1'" + allowed);
    CHECK(refusal("redis://h/1/") == "RedisStorage.url, database is '1/'" + allowed);
    CHECK(refusal("redis://h/1 ") == "RedisStorage.url, database is '1 '" + allowed);
    CHECK(refusal("redis://h/2147483648") == "RedisStorage.url, database is '2147483648'" + allowed);
    CHECK(refusal("redis+ring://a,b/c") == "RedisStorage.url, database is 'c'" + allowed);
    CHECK(refusal("unix:///s?db=") == "RedisStorage.url, database is ''" + allowed);
    CHECK(refusal("unix:///s?db=x") == "RedisStorage.url, database is 'x'" + allowed);
    CHECK(refusal("redis+cluster://a,b/1") == "RedisStorage.url, database is '1': allowed is 0 in a cluster");
    CHECK(refusal("redis+cluster://a/x") == "RedisStorage.url, database is 'x'" + allowed);
}

TEST_CASE("an endpoint that is named twice is refused") {
    const std::string allowed = " again: allowed is each endpoint once";
    CHECK(refusal("redis+ring://a,b,a") == "RedisStorage.url, endpoint is 'a'" + allowed);
    CHECK(refusal("redis+cluster://a,A:6379") == "RedisStorage.url, endpoint is 'A:6379'" + allowed);
    CHECK(refusal("redis+ring://[::1]:1,[::1]:1") == "RedisStorage.url, endpoint is '[::1]:1'" + allowed);
    CHECK(parse_url("redis+ring://a:1,a:2").endpoints.size() == 2);
}

TEST_CASE("a query is refused where none is read") {
    CHECK(refusal("redis://h?db=1") ==
          "RedisStorage.url, query is ***: allowed is none: the database is written as /n");
    CHECK(refusal("redis://h/0?password=secret") ==
          "RedisStorage.url, query is ***: allowed is none: the database is written as /n");
    CHECK(refusal("unix:///s?password=secret") == "RedisStorage.url, query is ***: allowed is db=n");
    CHECK(refusal("unix:///s?") == "RedisStorage.url, query is ***: allowed is db=n");
}

TEST_CASE("a socket's path that is none is refused") {
    const std::string allowed = ": allowed is the path of a socket from '/' on, as in unix:///run/redis.sock";
    CHECK(refusal("unix://") == "RedisStorage.url, path is empty or not absolute" + allowed);
    CHECK(refusal("unix:///") == "RedisStorage.url, path is empty or not absolute" + allowed);
    CHECK(refusal("unix://run/redis.sock") == "RedisStorage.url, path is empty or not absolute" + allowed);
    CHECK(refusal("unix://u:secret@/s") == "RedisStorage.url, path is empty or not absolute" + allowed);

    const std::string text =
        ": allowed is text without NUL, with blanks, control characters and % as % and two hex digits";
    CHECK(refusal("unix:///a b") == "RedisStorage.url, path is '/a b'" + text);
    CHECK(refusal("unix:///a\x7f") == "RedisStorage.url, path is '/a?'" + text);
    CHECK(refusal("unix:///a%0") == "RedisStorage.url, path is '/a%0'" + text);
    CHECK(refusal("unix:///a%00") == "RedisStorage.url, path is '/a%00'" + text);
}

TEST_CASE("a user or password that is not escaped right is refused and not shown") {
    for (const std::string_view wrong : {"%",
                                         "%4",
                                         "%4x",
                                         "%x4",
                                         "%-1",
                                         "% 1",
                                         "a b",
                                         "a\tb",
                                         "a\nb",
                                         "\x7f",
                                         "a/b",
                                         "a?b",
                                         "a#b",
                                         "a@b",
                                         "a[b",
                                         "a]b"}) {
        CAPTURE(wrong);
        CHECK(refusal("redis://u:" + std::string(wrong) + "@h") == credential_wrong("password"));
        CHECK(refusal("redis+cluster://" + std::string(wrong) + ":p@a,b") == credential_wrong("user"));
    }
    CHECK(refusal("redis://u:a\0b@h"sv) == credential_wrong("password"));
}

TEST_CASE("where the host is forgotten, the password in its place is not shown") {
    CHECK(refusal("redis://user:secret") == "RedisStorage.url, port is not a port number: allowed is 1 to 65535");
    CHECK(refusal("redis://:secret") == host_is("''"));
    CHECK(refusal("redis+cluster://u:secret@a,u:secret@b") == credential_wrong("password"));
}

TEST_CASE("no slip of one character makes an error that shows the password") {
    const std::string secret = "hunter2hunter2";
    const std::string_view urls[] = {"redis://user:hunter2hunter2@host:6379/0",
                                     "rediss://:hunter2hunter2@[::1]:6379/0",
                                     "redis+cluster://user:hunter2hunter2@a:1,b:2",
                                     "redis+ring://user:hunter2hunter2@a,b/1"};
    for (const std::string_view url : urls) {
        for (std::size_t i = 0; i < url.size(); ++i) {
            std::string without(url);
            without.erase(i, 1);
            CHECK(refusal(without).find(secret) == std::string::npos);
            CHECK(refusal(url.substr(0, i)).find(secret) == std::string::npos);
            for (int byte = 0; byte < 256; ++byte) {
                std::string replaced(url);
                replaced[i] = static_cast<char>(byte);
                std::string inserted(url);
                inserted.insert(i, 1, static_cast<char>(byte));
                for (const std::string& wrong : {replaced, inserted}) {
                    CHECK(refusal(wrong).find(secret) == std::string::npos);
                }
            }
        }
    }
}

/// Pieces of urls and random bytes, one after the other.
std::string random_url(support::Random& random) {
    constexpr std::string_view pieces[] = {"redis",      "rediss", "unix",        "redis+cluster",
                                           "redis+ring", "://",    "://",         "user",
                                           ":",          ":",      "@",           "%41",
                                           "%",          "[::1]",  "[",           "]",
                                           "host",       ",",      "a,b",         "/",
                                           "/0",         "?db=1",  "?",           "#",
                                           "6379",       "0",      "99999999999", "/tmp/s",
                                           " ",          "\0"sv};
    std::string url = random.chance(80) ? std::string(pieces[random.below(5)]) + "://" : "";
    for (std::uint64_t length = random.below(8); length > 0; --length) {
        if (random.chance(15)) {
            url.push_back(static_cast<char>(random.below(256)));
        } else {
            url += pieces[random.below(std::size(pieces))];
        }
    }
    return url;
}

bool is_sound(const Target& target) {
    bool sound = !target.endpoints.empty() && target.database >= 0;
    for (const Endpoint& endpoint : target.endpoints) {
        sound = sound && (endpoint.path.empty() ? !endpoint.host.empty() && endpoint.port > 0
                                                : endpoint.path[0] == '/' && endpoint.host.empty());
    }
    sound = sound && (target.kind != Kind::single || target.endpoints.size() == 1);
    return sound && (target.kind != Kind::cluster || target.database == 0);
}

TEST_CASE("any bytes are a sound target or an error that names a part") {
    support::Random random(1);
    std::size_t targets = 0;
    for (int round = 0; round < 300'000; ++round) {
        const std::string url = random_url(random);
        try {
            const Target target = parse_url(url);
            CHECK(is_sound(target));
            ++targets;
        } catch (const std::invalid_argument& error) {
            CHECK(std::string_view(error.what()).starts_with("RedisStorage.url, "));
            CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
        }
    }
    CHECK(targets > 10'000);
}

}  // namespace
