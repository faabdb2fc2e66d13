// SPDX-License-Identifier: MIT
// Names whose lookup hangs, fails, or finds addresses where nobody is: nobody waits for a resolver.
#include "../support/fault.hpp"
#include "../support/redis_server.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include <dlfcn.h>
#include <netdb.h>

namespace {

std::atomic<bool> hanging{false};
std::atomic<int> lookups{0};

}  // namespace

/// Stands before the system's: names that end in ".hangs" are 127.0.0.1, once nothing hangs any more.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
    using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto system = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    const bool only_numbers = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
    if (!only_numbers && std::string_view(name).ends_with(".hangs")) {
        ++lookups;
        for (int i = 0; hanging && i < 30'000; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        return system("127.0.0.1", service, hints, found);
    }
    if (!only_numbers && std::string_view(name).ends_with(".nowhere")) {
        ++lookups;
        return EAI_NONAME;
    }
    return system(name, service, hints, found);
}

namespace {

using namespace std::chrono_literals;
using fault::await;
using fault::options_of;
using fault::Watched;
using penstock::Source;
using penstock::StoreError;

TEST_CASE("a lookup that hangs keeps nobody waiting, and is not begun again and again") {
    const support::RedisServer server;
    hanging = true;
    lookups = 0;
    auto options = options_of(server.port());
    options.url = "redis://server.hangs:" + std::to_string(server.port());
    options.connect_timeout = 50ms;
    Watched watched(options);
    const fault::Load load(watched);
    CHECK(watched.fails_with(StoreError::timeout));
    CHECK(watched.check().source == Source::fail_open);
    CHECK(await([&] { return watched.stats().connects >= 5; }));
    CHECK(lookups == 1);
    hanging = false;
    CHECK(watched.recovers());
}

TEST_CASE("an engine whose lookup hangs is destroyed without waiting for it") {
    hanging = true;
    auto options = options_of(1);
    options.url = "redis://server.hangs:1";
    const auto begin = fault::Clock::now();
    for (int i = 0; i < 5; ++i) {
        Watched watched(options);
        (void)watched.check();
    }
    CHECK(fault::Clock::now() - begin < 5s);
    hanging = false;
}

TEST_CASE("a name that has no address is unavailable, and asked for again") {
    lookups = 0;
    auto options = options_of(1);
    options.url = "redis://server.nowhere:1";
    Watched watched(options);
    CHECK(watched.fails_with(StoreError::unavailable));
    CHECK(await([&] { return lookups >= 3; }));
    CHECK(watched.check().source == Source::fail_open);
}

TEST_CASE("a name is looked up anew for each connection") {
    support::RedisServer server;
    lookups = 0;
    auto options = options_of(server.port());
    options.url = "redis://server.hangs:" + std::to_string(server.port());
    Watched watched(options);
    REQUIRE(watched.recovers());
    CHECK(lookups == 1);
    server.restart();
    CHECK(await([&] { return watched.stats().losses == 1; }));
    CHECK(watched.recovers());
    CHECK(lookups >= 2);
}

}  // namespace
