// SPDX-License-Identifier: MIT
// How a gateway gets in: as a user of a cluster with few rights, with a password, over TLS, and to an IPv6 address.
#include "../support/certificates.hpp"
#include "../support/expect.hpp"
#include "../support/fault.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_cluster.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using penstock::Layout;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using support::Certificates;
using support::RedisClient;
using support::RedisCluster;
using support::RedisServer;

using Fleet = Limiter<TokenBucket, RedisStorage>;

constexpr std::array<Layout, 2> layouts{Layout::packed, Layout::per_key};
constexpr std::uint64_t capacity = 400;
constexpr TokenBucket bucket{.capacity = capacity, .refill = penstock::per_day(1)};

/// No node of these is to be taken for dead, however busy the machine is.
const std::vector<std::string> patience{"--cluster-node-timeout", "15000"};

RedisStorage::Options options_of(const std::string& url, Layout layout = Layout::packed) {
    return {.url = url,
            .timeout = 20s,
            .connect_timeout = 10s,
            .stall_timeout = 20s,
            .layout = layout,
            .expected_entries = 10'000,
            .on_failure = penstock::Deny{}};
}

/// Calls that had no answer.
std::uint64_t failures(const Fleet& limiter) {
    const auto& ended = limiter.storage().stats().ended;
    return std::accumulate(ended.begin() + 1, ended.end(), std::uint64_t{0});
}

/// Checks of several threads at once, for one client and for one of each thread: how many the one was allowed.
std::uint64_t checks(Fleet& limiter, std::uint64_t times) {
    const auto allowed_of = threads::results_of(3, [&](std::size_t thread) {
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < times; ++i) {
            count += limiter.check("shared").allowed ? 1 : 0;
            (void)limiter.check("thread " + std::to_string(thread) + "-" + std::to_string(i));
        }
        return count;
    });
    return std::accumulate(allowed_of.begin(), allowed_of.end(), std::uint64_t{0});
}

/// The limit is kept exactly and all answers come from the store, before, while and after the client's slot moves.
void check_through_a_move(RedisCluster& cluster, Fleet& limiter) {
    const int slot = penstock::redis::slot_of("{shared}");
    const std::size_t from = slot < cluster.first_slot(1) ? 0 : 1;
    std::uint64_t count = checks(limiter, 40);
    cluster.migrate(slot, from, 1 - from, [&] { count += checks(limiter, 20); });
    count += checks(limiter, 40);
    CHECK(count == 3 * 120);
    count += checks(limiter, 40);
    CHECK(count == capacity);
    CHECK(limiter.check("shared") == rejected().remaining(0));
    CHECK(failures(limiter) == 0);
    const std::string errors = cluster.ask(from, "INFO", "errorstats").text;
    CHECK(errors.find("errorstat_ASK:") != std::string::npos);
    CHECK(errors.find("errorstat_MOVED:") != std::string::npos);
}

std::string readme() {
    std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "../../README.md");
    return {std::istreambuf_iterator<char>(file), {}};
}

/// What stands in the README between two texts, word by word.
std::vector<std::string> words_between(std::string_view before, std::string_view after) {
    const std::string text = readme();
    const std::size_t begin = text.find(before);
    REQUIRE(begin != std::string::npos);
    const std::size_t first = begin + before.size();
    std::istringstream words(text.substr(first, text.find(after, first) - first));
    std::vector<std::string> all;
    for (std::string word; words >> word;) {
        all.push_back(word);
    }
    return all;
}

/// Only users of the access list run scripts from now on; the tests themselves run none.
void set_user(RedisCluster& cluster, const std::vector<std::string>& more_rights) {
    std::vector<std::string> line{"ACL", "SETUSER"};
    for (const std::string& word : words_between("ACL SETUSER ", "\n")) {
        line.push_back(word);
    }
    line.insert(line.end(), more_rights.begin(), more_rights.end());
    for (std::size_t node = 0; node < cluster.size(); ++node) {
        RedisClient client(cluster.port(node));
        client.add(line);
        client.flush();
        REQUIRE(client.receive().text == "OK");
        REQUIRE(client("ACL", "SETUSER", "default", "-@scripting").text == "OK");
    }
}

std::vector<std::string> rights_for_a_cluster() {
    return words_between("a cluster needs `", "`");
}

TEST_CASE("the rights that the README states for a cluster suffice, also while a slot moves under load") {
    RedisCluster cluster(2, 0, {.options = patience});
    set_user(cluster, rights_for_a_cluster());
    Fleet limiter{bucket, RedisStorage(options_of(cluster.url("penstock:secret@"), Layout::per_key))};
    check_through_a_move(cluster, limiter);
    Fleet stranger{bucket, RedisStorage(options_of(cluster.url(), Layout::per_key))};
    CHECK(stranger.check("shared").source == Source::fail_closed);
    CHECK(fault::ended(stranger.storage().stats(), StoreError::no_permission) == 1);
}

TEST_CASE("every operation works in a cluster with the rights that the README states") {
    RedisCluster cluster(2, 0, {.options = patience});
    set_user(cluster, rights_for_a_cluster());
    for (const Layout layout : layouts) {
        Fleet limiter{bucket, RedisStorage(options_of(cluster.url("penstock:secret@"), layout))};
        for (const char* client : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
            CHECK(limiter.check(client) == allowed().remaining(capacity - 1));
            CHECK(limiter.peek(client, 0) == allowed().remaining(capacity - 1));
            CHECK(limiter.refund(client, 1) == allowed().remaining(capacity));
            CHECK(limiter.charge(client, 2) == allowed().remaining(capacity - 2));
            CHECK(limiter.reserve(client, 100h, 4).decision == allowed().remaining(capacity - 6));
            limiter.reset(client);
            CHECK(limiter.peek(client, 0) == allowed().remaining(capacity));
        }
        CHECK(failures(limiter) == 0);
    }
}

TEST_CASE("a cluster needs the right to ask for its slots, and the lack of it is named") {
    RedisCluster cluster(2, 0, {.options = patience});
    set_user(cluster, {});
    Fleet limiter{bucket, RedisStorage(options_of(cluster.url("penstock:secret@")))};
    CHECK(limiter.check("client").source == Source::fail_closed);
    CHECK(fault::ended(limiter.storage().stats(), StoreError::no_permission) == 1);
}

TEST_CASE("a cluster whose nodes want a password is used by who knows it") {
    RedisCluster cluster(2, 0, {.options = patience});
    for (std::size_t node = 0; node < cluster.size(); ++node) {
        REQUIRE(cluster.ask(node, "CONFIG", "SET", "requirepass", "secret").text == "OK");
    }
    for (const Layout layout : layouts) {
        Fleet limiter{bucket, RedisStorage(options_of(cluster.url(":secret@"), layout))};
        CHECK(checks(limiter, 200) == capacity);
        CHECK(failures(limiter) == 0);
    }
    Fleet wrong{bucket, RedisStorage(options_of(cluster.url(":wrong@")))};
    CHECK(wrong.check("shared").source == Source::fail_closed);
    CHECK(fault::ended(wrong.storage().stats(), StoreError::wrong_password) == 1);
    Fleet none{bucket, RedisStorage(options_of(cluster.url()))};
    CHECK(none.check("shared").source == Source::fail_closed);
    CHECK(fault::ended(none.storage().stats(), StoreError::not_authenticated) == 1);
}

#if PENSTOCK_OPENSSL

/// Of a cluster whose nodes have this certificate.
RedisCluster::Settings with_tls(const Certificates& certificates, const std::string& names) {
    const Certificates::Files files = certificates.issue("server", names);
    RedisCluster::Settings settings{.options = patience, .tls = true};
    settings.options.insert(settings.options.end(), {"--tls-cert-file", files.certificate});
    settings.options.insert(settings.options.end(), {"--tls-key-file", files.key});
    settings.options.insert(settings.options.end(), {"--tls-ca-cert-file", certificates.ca()});
    settings.options.insert(settings.options.end(), {"--tls-auth-clients", "no"});
    return settings;
}

/// Gateways are connected to every node, and not to its port without TLS.
void check_no_plain_connection(RedisCluster& cluster) {
    for (std::size_t node = 0; node < cluster.size(); ++node) {
        const std::string plain = "laddr=127.0.0.1:" + std::to_string(cluster.port(node)) + " ";
        std::istringstream clients(cluster.ask(node, "CLIENT", "LIST").text);
        std::size_t gateways = 0;
        for (std::string line; std::getline(clients, line);) {
            const bool gateway = line.find(" name=gateway ") != std::string::npos;
            gateways += gateway ? 1 : 0;
            CHECK_FALSE((gateway && line.find(plain) != std::string::npos));
        }
        CHECK(gateways == 1);
    }
}

TEST_CASE("a cluster is used over TLS alone, also while a slot moves") {
    const Certificates certificates;
    RedisCluster cluster(2, 0, with_tls(certificates, "IP:127.0.0.1"));
    RedisStorage::Options options = options_of(cluster.url(), Layout::per_key);
    options.tls.ca_file = certificates.ca();
    options.client_name = "gateway";
    Fleet limiter{bucket, RedisStorage(options)};
    check_through_a_move(cluster, limiter);
    check_no_plain_connection(cluster);
    options.layout = Layout::packed;
    Fleet packed{bucket, RedisStorage(options)};
    CHECK(checks(packed, 200) == capacity);
    CHECK(failures(packed) == 0);
}

TEST_CASE("nodes of a cluster that tell their names are verified by them") {
    const Certificates certificates;
    RedisCluster::Settings settings = with_tls(certificates, "DNS:localhost");
    settings.options.insert(settings.options.end(), {"--cluster-announce-hostname", "localhost"});
    settings.options.insert(settings.options.end(), {"--cluster-preferred-endpoint-type", "hostname"});
    RedisCluster cluster(2, 0, settings);
    RedisStorage::Options options = options_of(cluster.url(), Layout::per_key);
    options.tls.ca_file = certificates.ca();
    Fleet by_address{bucket, RedisStorage(options)};
    CHECK(by_address.check("shared").source == Source::fail_closed);
    CHECK(fault::ended(by_address.storage().stats(), StoreError::tls_failed) == 1);
    options.url.replace(options.url.find("127.0.0.1"), 9, "localhost");
    Fleet by_name{bucket, RedisStorage(options)};
    support::await("the nodes to know the names", [&] { return by_name.check("warm up").allowed; });
    CHECK(checks(by_name, 200) == capacity);
}

#endif

/// Whether this machine has the address ::1.
bool has_ipv6() {
    const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    const bool bound = socket >= 0 && ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (socket >= 0) ::close(socket);
    return bound;
}

TEST_CASE("a server is used at its IPv6 address") {
    if (!has_ipv6()) {
        MESSAGE("skipped: this machine has no ::1");
        return;
    }
    const RedisServer server({"--bind", "127.0.0.1", "::1"});
    for (const Layout layout : layouts) {
        RedisStorage::Options options = options_of("redis://[::1]:" + std::to_string(server.port()), layout);
        options.client_name = "gateway";
        Fleet limiter{bucket, RedisStorage(options)};
        CHECK(checks(limiter, 200) == capacity);
        CHECK(failures(limiter) == 0);
        const std::string clients = RedisClient(server.port())("CLIENT", "LIST").text;
        CHECK(clients.find(" laddr=[::1]:" + std::to_string(server.port()) + " ") != std::string::npos);
    }
}

}  // namespace
