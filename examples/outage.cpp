// SPDX-License-Identifier: MIT
// A store that dies, comes back, hangs and goes on, second by second: the API never errs. With --svg FILE as a picture.
#include <penstock/guard/guarded.hpp>
#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include "outage/drawing.hpp"
#include "picture.hpp"
#include "redis_server.hpp"
#include "support.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Store = penstock::Guarded<penstock::RedisStorage>;
using Limiter = penstock::Limiter<penstock::TokenBucket, Store>;

constexpr std::size_t requests_per_second = 600;
constexpr std::size_t threads = 4;

/// Everyone may make 20 requests at once and 10 per second. This is one of two gateways: while the store is away it
/// counts by itself, and lets pass half of that.
Limiter make_limiter(const Store& store) {
    return Limiter{penstock::TokenBucket{.capacity = 20, .refill = penstock::per_second(10)}, store};
}

/// Of three requests one is of a client who asks for far too much, the others are of a hundred who do not.
std::string client_of(std::size_t request) {
    return request % 3 == 0 ? "greedy" : "user:" + std::to_string(request % 100);
}

/// The traffic of one second, from `begin` on.
drawing::Second serve(Limiter& limiter, Clock::time_point begin) {
    drawing::Second second;
    std::mutex mutex;
    const auto work = [&](std::size_t thread) {
        for (std::size_t i = thread; i < requests_per_second; i += threads) {
            std::this_thread::sleep_until(begin + i * 1s / requests_per_second);
            const std::string client = client_of(i);
            const auto start = Clock::now();
            const penstock::Decision decision = limiter.check(client);
            const auto time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
            const std::lock_guard lock(mutex);
            second.add(decision, client == "greedy", time);
        }
    };
    std::vector<std::jthread> running;
    for (std::size_t thread = 0; thread < threads; ++thread) {
        running.emplace_back(work, thread);
    }
    running.clear();
    std::this_thread::sleep_until(begin + 1s);
    return second;
}

std::vector<drawing::Second> live_through() {
    support::RedisServer server;
    const Store store{penstock::RedisStorage{{.url = server.url()}},
                      {.on_failure = penstock::Local{.gateways = 2}, .breaker = {.probe_interval = 500ms}}};
    Limiter limiter = make_limiter(store);
    while (limiter.peek("anybody").source != penstock::Source::store) {
        std::this_thread::sleep_for(1ms);  // so that the story begins with a store that is connected
    }
    std::vector<drawing::Second> seconds;
    const auto live = [&](const char* server_is, int count) {
        for (int i = 0; i < count; ++i) {
            seconds.push_back(serve(limiter, Clock::now()));
            seconds.back().server = server_is;
            seconds.back().breaker = store.stats().open > 0 ? "open" : "closed";
        }
    };
    live("well", 2);
    server.stop();
    live("dead", 2);
    server.start();
    live("back", 2);
    server.hang();
    live("hangs", 2);
    server.go_on();
    live("goes on", 2);
    return seconds;
}

void print(std::vector<drawing::Second> seconds) {
    const support::Table table{"second",
                               "server ",
                               "requests",
                               "allowed",
                               "greedy allowed",
                               "by store",
                               "by fallback",
                               "breaker ",
                               "p99 in us"};
    std::size_t number = 0;
    std::uint64_t answered = 0;
    for (drawing::Second& second : seconds) {
        table.row(++number,
                  second.server,
                  second.requests,
                  second.allowed,
                  second.greedy_allowed,
                  second.by_store,
                  second.by_fallback,
                  second.breaker,
                  static_cast<std::uint64_t>(second.p99().count()));
        answered += second.by_store + second.by_fallback;
    }
    std::printf("%llu of %llu requests were answered by a count, none by an error.\n",
                static_cast<unsigned long long>(answered),
                static_cast<unsigned long long>(seconds.size() * requests_per_second));
}

}  // namespace

int main(int argc, char** argv) {
    return support::print_or_draw(
        argc,
        argv,
        "outage",
        [] { print(live_through()); },
        [](std::ostream& file) { drawing::write_svg(file, live_through()); });
}
