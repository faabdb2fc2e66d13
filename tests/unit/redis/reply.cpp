// SPDX-License-Identifier: MIT
#include <penstock/redis/reply.hpp>

#include <doctest/doctest.h>

#include "../../support/random.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace {

using namespace std::string_view_literals;
using penstock::store_errors;
using penstock::StoreError;
using penstock::to_string;
using penstock::redis::classify;
using penstock::redis::parse_redirect;
using penstock::redis::Redirect;

struct Known {
    std::string_view text;
    StoreError error;
};

// As servers send them.
constexpr Known known_texts[] = {
    {"NOSCRIPT No matching script. Please use EVAL.", StoreError::no_script},
    {"ERR Error running script (call to f_0a1b): @user_script:1: @user_script: 1: -READONLY You can't write.",
     StoreError::read_only},
    {"ERR Error running script (call to f_0a1b): @user_script:12: OOM command not allowed", StoreError::out_of_memory},
    {"ERR Error running script (call to f_0a1b): @user_script:1: boom", StoreError::refused},
    {"ERR Error running script (call to f_0a1b): @user_script:", StoreError::refused},
    {"ERR Error running script", StoreError::refused},
    {"MOVED 12182 127.0.0.1:17023", StoreError::moved},
    {"ASK 5061 127.0.0.1:17023", StoreError::ask},
    {"TRYAGAIN Multiple keys request during rehashing of slot", StoreError::try_again},
    {"CLUSTERDOWN Hash slot not served", StoreError::cluster_down},
    {"CLUSTERDOWN The cluster is down", StoreError::cluster_down},
    {"READONLY You can't write against a read only replica.", StoreError::read_only},
    {"READONLY You can't write against a read only replica. script: 0a1b, on @user_script:1.", StoreError::read_only},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", StoreError::master_down},
    {"LOADING Redis is loading the dataset in memory", StoreError::loading},
    {"LOADING Valkey is loading the dataset in memory", StoreError::loading},
    {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", StoreError::busy},
    {"OOM command not allowed when used memory > 'maxmemory'.", StoreError::out_of_memory},
    {"NOREPLICAS Not enough good replicas to write.", StoreError::no_replicas},
    {"NOREPLICAS Not enough good slaves to write.", StoreError::no_replicas},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
     StoreError::misconfigured},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", StoreError::wrong_type},
    {"NOAUTH Authentication required.", StoreError::not_authenticated},
    {"WRONGPASS invalid username-password pair or user is disabled.", StoreError::wrong_password},
    {"NOPERM this user has no permissions to run the 'set' command", StoreError::no_permission},
    {"NOPERM User limiter has no permissions to run the 'set' command", StoreError::no_permission},
    {"ERR The user executing the script can't run this command or subcommand script: 0a1b, on @user_script:1.",
     StoreError::no_permission},
    {"CROSSSLOT Keys in request don't hash to the same slot", StoreError::cross_slot},
    {"ERR max number of clients reached", StoreError::too_many_clients},
    {"ERR max number of clients + cluster connections reached", StoreError::too_many_clients},
    {"PENSTOCK_FORMAT 2", StoreError::newer_format},
    {"PENSTOCK_FORMAT", StoreError::newer_format},
    {"ERR unknown command 'EVALSHA'", StoreError::refused},
    {"ERR user_script:1: boom script: 0a1b, on @user_script:1.", StoreError::refused},
    {"ERR SELECT is not allowed in cluster mode", StoreError::refused},
    {"DENIED Redis is running in protected mode", StoreError::refused},
};

TEST_CASE("every error that a server tells gets its name") {
    for (const Known& known : known_texts) {
        CAPTURE(known.text);
        CHECK(to_string(classify(known.text)) == to_string(known.error));
    }
}

TEST_CASE("every error but those without a server's text is met") {
    std::set<StoreError> met{StoreError::none,
                             StoreError::unavailable,
                             StoreError::timeout,
                             StoreError::overloaded,
                             StoreError::breaker_open,
                             StoreError::shut_down,
                             StoreError::protocol_error,
                             StoreError::tls_failed};
    for (const Known& known : known_texts) {
        met.insert(known.error);
    }
    CHECK(met.size() == store_errors);
}

TEST_CASE("the first word alone decides, and all of it") {
    CHECK(classify("BUSY") == StoreError::busy);
    CHECK(classify("BUSY whatever comes") == StoreError::busy);
    CHECK(classify("BUSYGROUP Consumer Group name already exists") == StoreError::refused);
    CHECK(classify("BUS") == StoreError::refused);
    CHECK(classify("busy") == StoreError::refused);
    CHECK(classify(" BUSY") == StoreError::refused);
    CHECK(classify("ERR BUSY") == StoreError::refused);
    CHECK(classify("ASKING") == StoreError::refused);
    CHECK(classify("") == StoreError::refused);
    CHECK(classify({}) == StoreError::refused);
    CHECK(classify("OOM\0"sv) == StoreError::refused);
}

TEST_CASE("a redirect names slot, host and port") {
    const Redirect moved = parse_redirect("MOVED 12182 127.0.0.1:17023");
    CHECK(moved == Redirect{StoreError::moved, 12182, "127.0.0.1", 17023});
    const Redirect ask = parse_redirect("ASK 0 node-1.example.org:1");
    CHECK(ask == Redirect{StoreError::ask, 0, "node-1.example.org", 1});
    CHECK(parse_redirect("MOVED 16383 h:65535") == Redirect{StoreError::moved, 16383, "h", 65535});
}

TEST_CASE("a redirect's IPv6 host ends at the last colon") {
    CHECK(parse_redirect("MOVED 1 2001:db8::1:6379") == Redirect{StoreError::moved, 1, "2001:db8::1", 6379});
    CHECK(parse_redirect("ASK 1 ::1:6379") == Redirect{StoreError::ask, 1, "::1", 6379});
}

TEST_CASE("a redirect without a host stays with the host that answered") {
    const Redirect redirect = parse_redirect("MOVED 3999 :6380");
    CHECK(redirect == Redirect{StoreError::moved, 3999, "", 6380});
}

TEST_CASE("a redirect that leads nowhere is a protocol error") {
    for (const std::string_view text : {"",
                                        "MOVED",
                                        "MOVED ",
                                        "MOVED 1",
                                        "MOVED 1 ",
                                        "MOVED 1 host",
                                        "MOVED 1 host:",
                                        "MOVED 1 host:0",
                                        "MOVED 1 host:65536",
                                        "MOVED 1 host:-1",
                                        "MOVED 1 host:+1",
                                        "MOVED 1 host:1x",
                                        "MOVED 1 host:1 ",
                                        "MOVED 1 host:1 more:1",
                                        "MOVED 1 ho st:1",
                                        "MOVED 1 ho\tst:1",
                                        "MOVED 1  host:1",
                                        "MOVED  1 host:1",
                                        "MOVED 16384 host:1",
                                        "MOVED 65536 host:1",
                                        "MOVED -1 host:1",
                                        "MOVED x host:1",
                                        "MOVED 99999999999999999999 host:1",
                                        "MOVED host:1",
                                        "moved 1 host:1",
                                        "READONLY 1 host:1",
                                        "ERR 1 host:1"}) {
        CAPTURE(text);
        CHECK(parse_redirect(text) == Redirect{});
    }
    CHECK(to_string(Redirect{}.error) == "protocol_error");
}

TEST_CASE("no bytes make a redirect that points outside of the text or to no slot or port") {
    support::Random random(1);
    std::size_t redirects = 0;
    for (int round = 0; round < 200'000; ++round) {
        std::string text(random.chance(50) ? "MOVED 3999 a:6380" : "ASK 12182 ::1:1");
        for (std::uint64_t change = random.below(4); change > 0; --change) {
            const std::size_t at = random.below(text.size());
            if (random.chance(30)) {
                text.resize(at + 1);
            } else {
                text[at] = static_cast<char>(random.chance(50) ? random.below(256) : random.between('0', ':'));
            }
        }
        CHECK(classify(text) != StoreError::none);
        const Redirect redirect = parse_redirect(text);
        if (redirect.error == StoreError::protocol_error) {
            CHECK(redirect == Redirect{});
            continue;
        }
        ++redirects;
        CHECK(redirect.error == classify(text));
        CHECK(redirect.slot < penstock::redis::cluster_slots);
        CHECK(redirect.port > 0);
        CHECK(redirect.host.data() >= text.data());
        CHECK(redirect.host.data() + redirect.host.size() < text.data() + text.size());
    }
    CHECK(redirects > 50'000);
    CHECK(redirects < 150'000);
}

TEST_CASE("errors are classified without allocation or exception, at compile time too") {
    static_assert(classify("MOVED 1 h:1") == StoreError::moved);
    static_assert(noexcept(classify(""))&& noexcept(parse_redirect("")));
}

}  // namespace
