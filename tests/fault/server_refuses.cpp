// SPDX-License-Identifier: MIT
// Servers that answer with an error: each has its name, is counted, and passes when its cause does.
#include "../support/expect.hpp"
#include "../support/fault.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"

#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/limiter.hpp>
#include <penstock/storage/redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using fault::await;
using fault::options_of;
using fault::Watched;
using penstock::Layout;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::RedisClient;
using support::RedisServer;
using support::Reply;

constexpr std::array<Layout, 2> layouts{Layout::packed, Layout::per_key};

RedisServer& server() {
    static RedisServer shared({"--dbfilename", "in-the-way"});
    return shared;
}

/// Sets an option of the server while it lives.
class Configured {
public:
    Configured(std::string option, const std::string& value) : option_(std::move(option)) {
        RedisClient client(server().port());
        before_ = client("CONFIG", "GET", option_).items.at(1).text;
        REQUIRE(client("CONFIG", "SET", option_, value).text == "OK");
    }
    Configured(const Configured&) = delete;
    Configured& operator=(const Configured&) = delete;
    ~Configured() { RedisClient(server().port())("CONFIG", "SET", option_, before_); }

private:
    std::string option_;
    std::string before_;
};

RedisStorage::Options options_in(Layout layout) {
    static int count = 0;
    auto options = options_of(server().port());
    options.layout = layout;
    options.timeout = 1s;  // answers come, and in time
    options.stall_timeout = 20s;
    options.prefix = "refuses-" + std::to_string(++count);
    options.on_failure = penstock::Deny{};
    return options;
}

/// While there is a `cause`, admissions fail with the error and rejections are decided; both as before afterwards.
template <class Cause>
void check_that_only_writes_fail(StoreError error, const Cause& cause) {
    for (const Layout layout : layouts) {
        Limiter limiter{TokenBucket{.capacity = 3, .refill = penstock::per_hour(1)}, RedisStorage(options_in(layout))};
        REQUIRE(await([&] { return limiter.check("full", 3).source == Source::store; }));
        REQUIRE(limiter.check("half") == expect::allowed(2));
        {
            const auto lasting = cause();
            for (int i = 0; i < 10; ++i) {
                CHECK(limiter.check("full") == expect::rejected().remaining(0));
                CHECK(limiter.check("half").source == Source::fail_closed);
            }
            CHECK(fault::ended(limiter.storage().stats(), error) == 10);
        }
        CHECK(await([&] { return limiter.check("half", 0).source == Source::store; }));
        CHECK(limiter.check("half") == expect::allowed(1));
        // Only a server that turned out to be a replica is looked for anew.
        CHECK((limiter.storage().stats().losses > 0) == (error == StoreError::read_only));
    }
}

/// No check is decided while there is a `cause`; all are afterwards.
template <class Cause>
void check_that_all_fail(StoreError error, const Cause& cause) {
    for (const Layout layout : layouts) {
        Watched watched(options_in(layout));
        REQUIRE(watched.recovers());
        {
            const auto lasting = cause();
            CHECK(watched.fails_with(error));
            CHECK(watched.check().source == Source::fail_closed);
        }
        CHECK(watched.recovers());
    }
}

TEST_CASE("a server out of memory still rejects, and admits nothing") {
    check_that_only_writes_fail(StoreError::out_of_memory, [] { return Configured("maxmemory", "1"); });
}

TEST_CASE("a server that misses its replicas still rejects, and admits nothing") {
    check_that_only_writes_fail(StoreError::no_replicas, [] { return Configured("min-replicas-to-write", "1"); });
}

TEST_CASE("a server that cannot save still rejects, and admits nothing") {
    // A directory stands where the file is to be.
    const auto in_the_way = server().directory() / "in-the-way";
    std::filesystem::create_directories(in_the_way / "file");
    RedisClient client(server().port());
    const Configured saving("save", "3600 1");
    client("SET", "something", "to save");
    client("BGSAVE");
    REQUIRE(await([&] { return client("INFO").text.find("rdb_last_bgsave_status:err") != std::string::npos; }));
    client("CONFIG", "SET", "stop-writes-on-bgsave-error", "no");
    check_that_only_writes_fail(StoreError::misconfigured,
                                [] { return Configured("stop-writes-on-bgsave-error", "yes"); });
}

/// The server is the replica of one that is not there.
struct Replica {
    Replica() {
        REQUIRE(RedisClient(server().port())("REPLICAOF", "127.0.0.1", std::to_string(support::free_port())).text ==
                "OK");
    }
    Replica(const Replica&) = delete;
    Replica& operator=(const Replica&) = delete;
    ~Replica() { RedisClient(server().port())("REPLICAOF", "NO", "ONE"); }
};

TEST_CASE("a replica still rejects, and admits nothing") {
    check_that_only_writes_fail(StoreError::read_only, [] { return Replica(); });
}

TEST_CASE("a replica without its master that serves nothing is a failure") {
    const Configured stale("replica-serve-stale-data", "no");
    check_that_all_fail(StoreError::master_down, [] { return Replica(); });
}

TEST_CASE("a server kept busy by a script says so, when it does") {
    struct Busy {
        Busy() : client(server().port()) {
            client.add({"EVAL", "while true do end", "0"});
            client.flush();
        }
        Busy(const Busy&) = delete;
        Busy& operator=(const Busy&) = delete;
        ~Busy() {
            RedisClient killer(server().port());
            CHECK(await([&] { return killer("SCRIPT", "KILL").text == "OK"; }));
            (void)client.receive();
        }
        RedisClient client;
    };
    const Configured soon("busy-reply-threshold", "20");
    check_that_all_fail(StoreError::busy, [] { return Busy(); });
}

TEST_CASE("something else under a client's key is told, and left alone") {
    for (const Layout layout : layouts) {
        const auto options = options_in(layout);
        Watched watched(options);
        REQUIRE(watched.recovers());
        RedisClient client(server().port());
        const Reply keys = client("KEYS", options.prefix + ":{*");
        REQUIRE(keys.items.size() == 1);
        const std::string key = keys.items[0].text;
        client("DEL", key);
        client("LPUSH", key, "something else");
        CHECK(watched.fails_with(StoreError::wrong_type));
        CHECK(watched.check().source == Source::fail_closed);
        CHECK(client("LRANGE", key, "0", "-1").items.at(0).text == "something else");
        client("DEL", key);
        CHECK(watched.recovers());
        CHECK(watched.stats().losses == 0);
    }
}

TEST_CASE("a state that is none of ours is a newer format, and left alone") {
    const auto options = options_in(Layout::per_key);
    Watched watched(options);
    REQUIRE(watched.recovers());
    RedisClient client(server().port());
    const std::string key = client("KEYS", options.prefix + ":{*").items.at(0).text;
    client("SET", key, "not ours");
    CHECK(watched.fails_with(StoreError::newer_format));
    CHECK(client("GET", key).text == "not ours");
}

TEST_CASE("a server that asks for a password gets in nobody without one") {
    RedisServer own;
    RedisClient client(own.port());
    client("CONFIG", "SET", "requirepass", "secret");
    for (const Layout layout : layouts) {
        auto options = options_of(own.port());
        options.layout = layout;
        options.client_name = "nobody";
        Watched watched(options);
        CHECK(watched.fails_with(StoreError::not_authenticated));
        CHECK(watched.check().source == Source::fail_open);
        CHECK(watched.stats().sent == 0);
        client("AUTH", "secret");
        client("CONFIG", "SET", "requirepass", "");
        CHECK(watched.recovers());
        client("CONFIG", "SET", "requirepass", "secret");
    }
}

TEST_CASE("what a user may not do is told, wherever it is found out") {
    RedisServer own;
    RedisClient client(own.port());
    for (const Layout layout : layouts) {
        for (const char* denied :
             {"-evalsha", "-hset -set", "-hget -get -time", "-script", "-eval -ping", "resetkeys"}) {
            client("SCRIPT", "FLUSH");
            client("ACL", "SETUSER", "gateway", "reset", "on", ">secret", "~*", "+@all");
            std::vector<std::string> words{"ACL", "SETUSER", "gateway"};
            for (std::string_view rest = denied; !rest.empty();) {
                const std::size_t end = std::min(rest.find(' '), rest.size());
                words.emplace_back(rest.substr(0, end));
                rest.remove_prefix(std::min(end + 1, rest.size()));
            }
            client.add(words);
            client.flush();
            REQUIRE(client.receive().text == "OK");
            auto options = options_of(own.port());
            options.layout = layout;
            options.user = "gateway";
            options.password = "secret";
            Watched watched(options);
            CAPTURE(denied);
            CHECK(watched.fails_with(StoreError::no_permission));
            CHECK(watched.ended(StoreError::none) == 0);
            client("ACL", "SETUSER", "gateway", "~*", "+@all");
            CHECK(watched.recovers());
        }
    }
}

TEST_CASE("a user who is dropped is told so, and let in again later") {
    RedisServer own;
    RedisClient client(own.port());
    client("ACL", "SETUSER", "gateway", "on", ">secret", "~*", "+@all");
    auto options = options_of(own.port());
    options.user = "gateway";
    options.password = "secret";
    Watched watched(options);
    REQUIRE(watched.recovers());
    client("ACL", "DELUSER", "gateway");
    CHECK(watched.fails_with(StoreError::wrong_password));
    client("ACL", "SETUSER", "gateway", "on", ">secret", "~*", "+@all");
    CHECK(watched.recovers());
}

TEST_CASE("a server with too many clients is a failure, until one leaves") {
    for (const char* name : {"", "named"}) {
        RedisServer own;
        RedisClient client(own.port());
        client("CONFIG", "SET", "maxclients", "1");
        auto options = options_of(own.port());
        options.client_name = name;
        Watched watched(options);
        CHECK(watched.fails_with(StoreError::too_many_clients));
        CHECK(watched.check().source == Source::fail_open);
        client("CONFIG", "SET", "maxclients", "10");
        CHECK(watched.recovers());
    }
}

TEST_CASE("a server that reads its data from disk is waited for without waiting") {
    RedisServer own({"--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"});
    RedisClient(own.port())("EVAL", "for i = 1, 5000 do redis.call('SET', i, string.rep('x', 100)) end", "0");
    RedisClient(own.port())("SAVE");
    for (const Layout layout : layouts) {
        auto options = options_of(own.port());
        options.layout = layout;
        options.timeout = 1s;
        options.connect_timeout = 2s;
        own.restart();
        Watched watched(options);
        CHECK(watched.fails_with(StoreError::loading));
        CHECK(watched.check().source == Source::fail_open);
        RedisClient(own.port())("CONFIG", "SET", "key-load-delay", "0");
        CHECK(watched.recovers());
    }
}

TEST_CASE("what scripts, connection and loading need is all that a user needs") {
    RedisServer own;
    RedisClient client(own.port());
    const Reply made = client("ACL",
                              "SETUSER",
                              "gateway",
                              "on",
                              ">secret",
                              "~penstock:*",
                              "-@all",
                              "+auth",
                              "+ping",
                              "+select",
                              "+client|setname",
                              "+eval",
                              "+evalsha",
                              "+script|load",
                              "+time",
                              "+get",
                              "+set",
                              "+pexpire",
                              "+pttl",
                              "+hget",
                              "+hset",
                              "+hdel",
                              "+hlen",
                              "+del",
                              "+hgetall");
    REQUIRE(made.text == "OK");
    for (const Layout layout : layouts) {
        auto options = options_of(own.port());
        options.layout = layout;
        options.user = "gateway";
        options.password = "secret";
        options.client_name = "gateway";
        options.url += "/1";
        Watched watched(options);
        REQUIRE(watched.recovers());
        (void)watched.limiter().charge("key", 1);
        watched.limiter().reset("key");
        CHECK(watched.ended(StoreError::no_permission) == 0);
    }
}

}  // namespace
