// SPDX-License-Identifier: MIT
// Nothing stays in the store for longer than it matters.
#include "../support/fault.hpp"
#include "../support/print.hpp"
#include "../support/random_trace.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Layout;
using penstock::Limiter;
using penstock::RedisStorage;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using std::chrono::microseconds;
using support::RedisClient;
using support::RedisServer;

RedisStorage storage_of(const RedisServer& server, Layout layout, const std::string& prefix = "penstock") {
    return RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(server.port()),
                         .timeout = 20s,
                         .connect_timeout = 20s,
                         .stall_timeout = 20s,
                         .prefix = prefix,
                         .layout = layout,
                         .expected_entries = 1000,
                         .on_failure = penstock::Deny{}}};
}

TEST_CASE("when the clients go the store is empty again, but for the meta of the packed layout") {
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        const RedisServer server;
        RedisClient client(server.port());
        Limiter limiter{TokenBucket{.capacity = 10, .refill = penstock::per_second(1000)}, storage_of(server, layout)};
        for (int i = 0; i < 500; ++i) {
            CHECK(limiter.check("client " + std::to_string(i), 10).allowed);
        }
        const std::int64_t rest = layout == Layout::packed ? 1 : 0;
        CHECK(client("DBSIZE").integer > rest);
        CHECK(fault::await([&] { return client("DBSIZE").integer == rest; }));
        CHECK(limiter.check("client 1", 10).allowed);
    }
}

TEST_CASE("every key of the store has a TTL after every operation") {
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        const RedisServer server;
        RedisClient client(server.port());
        Limiter limiter{penstock::AllOf{TokenBucket{.capacity = 10, .refill = penstock::per_hour(1)},
                                        TokenBucket{.capacity = 20, .refill = penstock::per_day(1)}},
                        storage_of(server, layout)};
        const auto check_lifetimes = [&] {
            for (const auto& key : client("KEYS", "*").items) {
                CHECK(client("PTTL", key.text).integer > 0);
            }
        };
        for (int i = 0; i < 20; ++i) {
            const std::string key = "client " + std::to_string(i % 3);
            static_cast<void>(limiter.check(key, 2));
            check_lifetimes();
            static_cast<void>(limiter.charge(key, 1));
            check_lifetimes();
            static_cast<void>(limiter.refund(key, 2));
            check_lifetimes();
            static_cast<void>(limiter.reserve(key, 100h, 1));
            check_lifetimes();
        }
    }
}

/// The same client in two stores: one keeps it for ever, the other drops it whenever nothing of it counts.
template <class Algorithm>
class KeptAndDropped {
public:
    KeptAndDropped(const RedisServer& server, Layout layout, std::uint64_t test, std::uint64_t number)
        : number_(number), random_(trace::random_of(test, number)), plans_(trace::random_twins<Algorithm>(random_)),
          client_(server.port()), kept_(algorithm(), storage_of(server, layout, "kept"), clock_),
          dropped_(algorithm(), storage_of(server, layout, "dropped"), clock_) {
        now_ = random_.between(0, trace::max_time / 4);
        if (is_joined) {
            // The server waits for the slowest plan so far, and cannot know that of a later call.
            plans_.erase(plans_.begin() + 1, plans_.end());
        }
    }

    ~KeptAndDropped() { client_("FLUSHALL"); }

    /// Returns how often the client was dropped.
    int go(int steps) {
        for (step_ = 0; step_ < steps; ++step_) {
            INFO("PENSTOCK_SEED=", trace::seed_offset(), ", trace ", number_, ", step ", step_, ", at ", now_, " us");
            clock_.set(trace::micros(now_));
            if (now_ >= fresh_at_) {
                drop();
                compare_peeks();
            }
            ask();
            fresh_at_ = now_ + until_fresh();
            now_ = next_time();
        }
        return drops_;
    }

private:
    static constexpr bool is_joined = !requires(const Algorithm& algorithm) { trace::model_of(algorithm); };

    [[nodiscard]] Algorithm algorithm() const { return trace::algorithm_of(plans_[0].parameters); }

    template <class Ask>
    Decision both(const Ask& ask) {
        const Decision kept = ask(kept_);
        CHECK(ask(dropped_) == kept);
        CHECK(kept.source == penstock::Source::store);
        return kept;
    }

    void drop() {
        drops_ += 1;
        for (const auto& key : client_("KEYS", "dropped:*").items) {
            if (key.text != "dropped:meta") {
                client_("DEL", key.text);
            }
        }
    }

    void compare_peeks() {
        for (const auto& twin : plans_) {
            for (const std::uint64_t cost : {std::uint64_t{0}, std::uint64_t{1}, twin.limit(), twin.limit() + 1}) {
                const Decision fresh = both([&](auto& limiter) { return limiter.peek("client", twin.plan, cost); });
                CHECK(fresh.remaining == (fresh.allowed ? twin.limit() - cost : twin.limit()));
            }
        }
    }

    void ask() {
        const auto& twin = plans_[random_.below(plans_.size())];
        const std::uint64_t remaining =
            both([&](auto& limiter) { return limiter.peek("client", twin.plan, 0); }).remaining;
        const std::uint64_t cost = trace::random_cost(random_, remaining, twin.limit());
        const std::uint64_t dice = random_.below(100);
        last_ = both([&](auto& limiter) {
            return dice < 70   ? limiter.check("client", twin.plan, cost)
                   : dice < 85 ? limiter.charge("client", twin.plan, cost)
                               : limiter.refund("client", twin.plan, cost);
        });
    }

    /// Until it is fresh under each plan. Of several limits a decision tells one: there, as long as the server waits.
    std::uint64_t until_fresh() {
        if constexpr (is_joined) {
            std::int64_t longest = 0;
            for (const auto& key : client_("KEYS", "dropped:*").items) {
                longest = key.text == "dropped:meta" ? longest : (std::max)(longest, client_("PTTL", key.text).integer);
            }
            return static_cast<std::uint64_t>(longest) * 1000;
        } else {
            microseconds longest{0};
            for (const auto& twin : plans_) {
                longest = (std::max)(longest, kept_.peek("client", twin.plan, 0).reset_after);
            }
            return trace::count_of(longest);
        }
    }

    std::uint64_t next_time() {
        const std::uint64_t retry = last_.retry_after == penstock::never ? 0 : trace::count_of(last_.retry_after);
        const std::uint64_t fresh = trace::minus(fresh_at_, now_);
        const std::array<std::uint64_t, 7> steps{0,
                                                 retry,
                                                 trace::minus(fresh, 1),
                                                 fresh,
                                                 fresh + 1,
                                                 fresh + random_.log_between(1, plans_[0].scale()),
                                                 random_.log_between(1, plans_[0].scale())};
        return (std::min)(now_ + steps[random_.below(steps.size())], trace::max_time);
    }

    std::uint64_t number_;
    support::Random random_;
    std::vector<trace::Twin<Algorithm>> plans_;
    RedisClient client_;
    penstock::ManualClock clock_;
    Limiter<Algorithm, RedisStorage, penstock::ManualClock> kept_;
    Limiter<Algorithm, RedisStorage, penstock::ManualClock> dropped_;
    std::uint64_t now_ = 0;
    std::uint64_t fresh_at_ = 0;
    Decision last_{};
    int step_ = 0;
    int drops_ = 0;
};

TEST_CASE_TEMPLATE("a client whose key has run out is decided on as if it were still there",
                   Algorithm,
                   TokenBucket,
                   SlidingWindow,
                   FixedWindow,
                   AllOf<TokenBucket, FixedWindow>,
                   AllOf<SlidingWindow, TokenBucket>) {
    const RedisServer server;
    int drops = 0;
    for (std::uint64_t number = 0; number < 24; ++number) {
        const Layout layout = number % 2 == 0 ? Layout::packed : Layout::per_key;
        drops += KeptAndDropped<Algorithm>(server, layout, 40, number).go(40);
    }
    CHECK(drops > 100);
}

}  // namespace
