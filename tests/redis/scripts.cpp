// SPDX-License-Identifier: MIT
// What the scripts do to the server's memory: what is written, for how long, what is refused, and what is swept.
#include <penstock/redis/script.hpp>

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>

#include "../support/expect.hpp"
#include "../support/print.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Micros;
using penstock::never;
using penstock::Op;
using penstock::per;
using penstock::per_day;
using penstock::per_second;
using penstock::Plan;
using penstock::plan;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using penstock::redis::Layout;
using penstock::redis::Scripts;
using penstock::redis::Time;
using std::chrono::microseconds;
using support::RedisClient;
using support::Reply;

constexpr Micros second = 1'000'000;
constexpr Micros hour = 3600 * second;
constexpr std::array<Layout, 2> layouts{Layout::packed, Layout::per_key};
constexpr std::uint64_t largest_cost = (std::numeric_limits<std::uint64_t>::max)();

support::RedisServer& server() {
    static support::RedisServer shared;
    return shared;
}

/// An empty server, and a limiter's scripts on it. Keys are k0, k1, ...; those of a packed layout share the bucket b.
template <class Algorithm>
class Store {
public:
    explicit Store(Layout layout, Time time = Time::limiter)
        : client(server().port()), layout_(layout), scripts_(layout, time) {
        client("FLUSHALL");
        client("CONFIG", "RESETSTAT");
        for (const Op op : {Op::check, Op::charge}) {
            client("SCRIPT", "LOAD", scripts_.script(op).text);
        }
    }

    Reply call(
        Op op, const Plan<Algorithm>& its, Micros now, std::uint64_t cost, microseconds max_wait = {}, int key = 0) {
        std::vector<std::string> words{"EVALSHA", scripts_.script(op).sha1, "1", name(key)};
        if (layout_ == Layout::packed) {
            words.push_back(field(key));
        }
        scripts_.push(
            op, its, now, cost, phase, max_wait, [&](std::string_view argument) { words.emplace_back(argument); });
        client.add(words);
        client.flush();
        return client.receive();
    }

    Decision operator()(
        Op op, const Plan<Algorithm>& its, Micros now, std::uint64_t cost, microseconds max_wait = {}, int key = 0) {
        const Reply reply = call(op, its, now, cost, max_wait, key);
        Decision decision{};
        REQUIRE_MESSAGE(Scripts<Algorithm>::decision(reply.integers(), op, Scripts<Algorithm>::limit_of(its), decision),
                        reply.text);
        return decision;
    }

    [[nodiscard]] std::string name(int key) const {
        return layout_ == Layout::packed ? "b" : "k" + std::to_string(key);
    }

    [[nodiscard]] static std::string field(int key) { return "field" + std::to_string(1'000'000 + key); }

    std::string stored(int key = 0) {
        return layout_ == Layout::packed ? client("HGET", name(key), field(key)).text : client("GET", name(key)).text;
    }

    void store(const std::string& value) {
        if (layout_ == Layout::packed) {
            client("HSET", name(0), field(0), value);
        } else {
            client("SET", name(0), value);
        }
    }

    std::int64_t ttl() { return client("PTTL", name(0)).integer; }

    /// How often anything was written since the server started.
    std::string writes() { return info("persistence", "rdb_changes_since_last_save:"); }

    std::string info(const std::string& section, const std::string& field) {
        const std::string text = client("INFO", section).text;
        const std::size_t at = text.find(field);
        return at == std::string::npos ? "" : text.substr(at, text.find('\r', at) - at);
    }

    Micros phase = 0;
    RedisClient client;

private:
    Layout layout_;
    Scripts<Algorithm> scripts_;
};

const auto bucket = plan(TokenBucket{.capacity = 5, .refill = per_second(1)});

template <class Algorithm>
void rejections_write_nothing(const Algorithm& algorithm) {
    const auto its = plan(algorithm);
    for (const Layout layout : layouts) {
        Store<Algorithm> store(layout);
        const std::string untouched = store.writes();
        CHECK(store(Op::peek, its, second, 1) == allowed());
        CHECK(store(Op::check, its, second, 0) == allowed());
        CHECK(store(Op::check, its, second, largest_cost) == rejected(never));
        CHECK(store(Op::refund, its, second, 1) == allowed());
        CHECK(store.writes() == untouched);
        CHECK(store.client("DBSIZE").integer == 0);

        CHECK(store(Op::check, its, second, 3) == allowed());
        const std::string before = store.writes();
        const std::string value = store.stored();
        CHECK(before != untouched);
        CHECK(store(Op::check, its, second, 5) == rejected());
        CHECK(store(Op::peek, its, second, 5) == rejected());
        CHECK(store(Op::peek, its, second, 1) == allowed());
        CHECK(store(Op::check, its, second, 0) == allowed());
        CHECK(store(Op::refund, its, second, 0) == allowed());
        CHECK(store(Op::charge, its, second, 0) == allowed());
        CHECK(store(Op::reserve, its, second, 5, 0us) == rejected());
        CHECK(store.writes() == before);
        CHECK(store.stored() == value);
    }
}

/// With no other traffic the same check is rejected one microsecond before its time, and admitted at it.
template <class Algorithm>
void waits_are_exact(const Algorithm& algorithm, Micros phase) {
    const auto its = plan(algorithm);
    for (const Layout layout : layouts) {
        Store<Algorithm> store(layout);
        store.phase = phase;
        Micros now = 100 * hour + 12'345;
        for (const std::uint64_t cost : std::array<std::uint64_t, 5>{5, 1, 3, 5, 2}) {
            const Decision first = store(Op::check, its, now, cost);
            if (!first.allowed) {
                const auto wait = static_cast<Micros>(first.retry_after.count());
                CHECK(store(Op::check, its, now + wait - 1, cost) == rejected(1us));
                CHECK(store(Op::check, its, now + wait, cost) == allowed());
                now += wait;
            }
            CHECK(store.ttl() > 0);
        }
    }
}

}  // namespace

TEST_CASE("a peek, a rejection and what changes nothing write nothing") {
    rejections_write_nothing(TokenBucket{.capacity = 5, .refill = per_second(1)});
    rejections_write_nothing(SlidingWindow{.limit = 5, .window = 10s});
    rejections_write_nothing(FixedWindow{.limit = 5, .window = 10s});
    rejections_write_nothing(
        AllOf{TokenBucket{.capacity = 7, .refill = per_second(1)}, FixedWindow{.limit = 5, .window = 10s}});
}

TEST_CASE("a rejection is still told where the server takes no writes") {
    for (const Layout layout : layouts) {
        Store<TokenBucket> store(layout);
        CHECK(store(Op::check, bucket, 0, 5) == allowed(0));
        store.client("CONFIG", "SET", "maxmemory", "1");
        CHECK(store(Op::check, bucket, 0, 1) == rejected(1s));
        CHECK(store.call(Op::check, bucket, second, 1).text.substr(0, 4) == "OOM ");
        store.client("CONFIG", "SET", "maxmemory", "0");
        CHECK(store(Op::check, bucket, second, 1) == allowed(0));
    }
}

TEST_CASE("retry_after is exact to the microsecond") {
    waits_are_exact(TokenBucket{.capacity = 5, .refill = per(7, 13s)}, 0);
    waits_are_exact(TokenBucket{.capacity = 5, .refill = per(1, 30h)}, 0);
    waits_are_exact(SlidingWindow{.limit = 5, .window = 17s}, 0);
    waits_are_exact(SlidingWindow{.limit = 5, .window = 17s, .align = penstock::Align::staggered}, 1'234'567'891'011);
    waits_are_exact(FixedWindow{.limit = 5, .window = 24h, .align = penstock::Align::staggered, .offset = -7h}, 99);
    waits_are_exact(AllOf{TokenBucket{.capacity = 5, .refill = per(7, 13s)}, SlidingWindow{.limit = 9, .window = 1min}},
                    0);
}

TEST_CASE("on the server's time limits hold, and time passes") {
    const auto its = plan(TokenBucket{.capacity = 3, .refill = per(1, 100ms)});
    for (const Layout layout : layouts) {
        Store<TokenBucket> store(layout, Time::server);
        CHECK(store(Op::check, its, 0, 3) == allowed(0));
        const Decision full = store(Op::check, its, 0, 1);
        CHECK(full == rejected());
        CHECK(full.retry_after <= 100ms);
        CHECK(store.ttl() > 1000);
        std::this_thread::sleep_for(full.retry_after);
        CHECK(store(Op::check, its, 0, 1) == allowed());
        CHECK(store(Op::charge, its, 0, 3) == rejected());
        CHECK(store(Op::reserve, its, 0, 1, 1s) == rejected());
        CHECK(store(Op::refund, its, 0, 9) == allowed(3));
    }
}

TEST_CASE("a reservation tells its wait, and waits of more than 285 years are counted out") {
    const auto slow = plan(TokenBucket{.capacity = 255, .refill = per(1, microseconds(std::int64_t{1} << 44))});
    const Micros last = (Micros{1} << 53) - 1;
    for (const Layout layout : layouts) {
        Store<TokenBucket> store(layout);
        CHECK(store(Op::reserve, slow, last, 255, 0us) == allowed(0));
        const auto wait = microseconds((std::int64_t{254} << 44) + static_cast<std::int64_t>(last));
        CHECK(store(Op::reserve, slow, 0, 254, wait - 1us) == rejected(wait));
        const Decision taken = store(Op::reserve, slow, 0, 254, wait);
        CHECK(taken.allowed);
        CHECK(taken.retry_after == wait);
        CHECK(taken.reset_after == microseconds((std::int64_t{509} << 44) + static_cast<std::int64_t>(last)));
    }
}

TEST_CASE("of several limits the longest wait is told, though the clock is further behind one than the other") {
    const AllOf both{TokenBucket{.capacity = 10, .refill = per_second(1)}, FixedWindow{.limit = 10, .window = 22s}};
    using Both = std::remove_cv_t<decltype(both)>;
    const auto its = plan(both);
    for (const Layout layout : layouts) {
        Store<Both> store(layout);
        Both::State state{};
        CHECK(store(Op::charge, its, 10 * second, 20) == Both::charge(state, its, 10 * second, 20, 0));
        CHECK(store(Op::refund, its, 20 * second, 1) == Both::refund(state, its, 20 * second, 1, 0));
        const Decision expected = Both::step(state, its, 5 * second, 4, 0);
        CHECK(expected == rejected(18s));
        CHECK(store(Op::check, its, 5 * second, 4) == expected);
    }
}

TEST_CASE("debts that are carried over to windows of other lengths end at twice the largest limit") {
    const std::uint64_t length = std::uint64_t{1} << 45;
    const Micros phase = length - 1;
    const auto its = [](std::uint64_t window, penstock::Align align) {
        return plan(SlidingWindow{.limit = std::uint64_t{1} << 39,
                                  .window = microseconds(static_cast<std::int64_t>(window)),
                                  .align = align});
    };
    const auto longest = its(length, penstock::Align::epoch);
    const auto other = its(length - 2, penstock::Align::staggered);
    const Micros end_of_third = phase + 3 * (length - 2) - 1;
    for (const Layout layout : layouts) {
        Store<SlidingWindow> store(layout);
        store.phase = phase;
        SlidingWindow::State state{};
        const auto charge = [&](const auto& by, Micros now) {
            const Decision expected = SlidingWindow::charge(state, by, now, largest_cost, phase);
            CHECK(store(Op::charge, by, now, largest_cost) == expected);
        };
        charge(longest, 0);
        charge(longest, 2 * length - 1);
        charge(other, 2 * length - 1);
        charge(other, end_of_third);
        charge(longest, end_of_third);
        CHECK(store(Op::refund, longest, end_of_third, std::uint64_t{1} << 39) ==
              SlidingWindow::refund(state, longest, end_of_third, std::uint64_t{1} << 39, phase));
        CHECK(store(Op::check, longest, end_of_third, 1) ==
              SlidingWindow::step(state, longest, end_of_third, 1, phase));
    }
}

TEST_CASE("a key lives until it is fresh under the slowest plan, and a second more") {
    const auto slow = plan(TokenBucket{.capacity = 16, .refill = per(1, 4h)});
    const auto fast = plan(TokenBucket{.capacity = 16, .refill = per(1, 1h)});
    for (const Layout layout : layouts) {
        Store<TokenBucket> store(layout);
        TokenBucket::State state{};
        for (const auto& its : {slow, fast, fast}) {
            CHECK(store(Op::check, its, hour, 2) == TokenBucket::step(state, its, hour, 2, 0));
            const auto needed = static_cast<std::int64_t>(TokenBucket::fresh_at(state) - hour) / 1000 + 1000;
            CHECK(store.ttl() > needed - 10'000);
            CHECK((layout == Layout::packed || store.ttl() <= needed + 1));
        }
    }
}

TEST_CASE(
    "on a clock of the limiter's a key lives for an hour at least, on the server's for a second more than needed") {
    const auto quick = plan(TokenBucket{.capacity = 5, .refill = per(5, 1ms)});
    for (const Layout layout : layouts) {
        Store<TokenBucket> own(layout);
        CHECK(own(Op::check, quick, 0, 1) == allowed());
        CHECK(own.ttl() > 3'590'000);
        Store<TokenBucket> servers(layout, Time::server);
        CHECK(servers(Op::check, quick, 0, 1) == allowed());
        CHECK(servers.ttl() > 500);
        CHECK(servers.ttl() <= 2010);
    }
}

TEST_CASE("a bucket that lost its TTL gets one with the next that is written") {
    Store<TokenBucket> store(Layout::packed);
    CHECK(store(Op::check, bucket, 0, 1) == allowed());
    store.client("PERSIST", "b");
    CHECK(store.ttl() == -1);
    CHECK(store(Op::check, bucket, 0, 1) == allowed());
    CHECK(store.ttl() > 0);
}

TEST_CASE("what a newer version or somebody else wrote is refused and left as it is") {
    for (const Layout layout : layouts) {
        Store<TokenBucket> store(layout);
        CHECK(store(Op::check, bucket, 0, 1) == allowed());
        const std::string ours = store.stored();
        std::string newer = ours;
        newer[0] = '\xc0';
        std::string of_a_window = ours;
        of_a_window[0] = '\x40';
        for (const std::string& value : {newer, newer + "more", of_a_window, std::string("hello"), std::string()}) {
            store.store(value);
            for (const Op op : {Op::check, Op::peek, Op::refund, Op::charge, Op::reserve, Op::reset}) {
                const Reply reply = store.call(op, bucket, 0, 1);
                CHECK(reply.is(Reply::Kind::error));
                CHECK(reply.text.substr(0, 16) == "PENSTOCK_FORMAT ");
                CHECK(store.stored() == value);
            }
        }
        store.store(ours);
        CHECK(store(Op::check, bucket, 0, 1) == allowed(3));
    }
}

TEST_CASE("a key of another type is refused and left as it is") {
    for (const Layout layout : layouts) {
        Store<TokenBucket> store(layout);
        store.client("LPUSH", store.name(0), "element");
        for (const Op op : {Op::check, Op::charge, Op::reset}) {
            CHECK(store.call(op, bucket, 0, 1).text.substr(0, 10) == "WRONGTYPE ");
        }
        CHECK(store.client("LLEN", store.name(0)).integer == 1);
    }
}

TEST_CASE("a reset forgets one client") {
    for (const Layout layout : layouts) {
        Store<TokenBucket> store(layout);
        CHECK(store(Op::check, bucket, 0, 5, {}, 0) == allowed(0));
        CHECK(store(Op::check, bucket, 0, 5, {}, 1) == allowed(0));
        CHECK(store.call(Op::reset, bucket, 0, 0).items.empty());
        CHECK(store(Op::peek, bucket, 0, 5, {}, 0) == allowed(0));
        CHECK(store(Op::peek, bucket, 0, 1, {}, 1) == rejected());
    }
}

TEST_CASE("a full bucket is swept of those that are fresh, and of no others") {
    Store<TokenBucket> store(Layout::packed);
    const auto slow = plan(TokenBucket{.capacity = 5, .refill = per_day(1)});
    for (int key = 0; key < 96; ++key) {
        CHECK(store(Op::check, key % 3 == 0 ? slow : bucket, 0, 5, {}, key) == allowed(0));
    }
    store.client("HSET", "b", "of somebody", "else");
    CHECK(store.client("HLEN", "b").integer == 97);

    // A token of a second takes 2^20 us at most, so five are back within 5.24 s, in whole seconds 6.
    const Micros not_yet = 5 * second + 200'000;
    CHECK(store(Op::check, bucket, not_yet, 1, {}, 1) == allowed());
    CHECK(store.client("HLEN", "b").integer == 97);
    CHECK(store(Op::check, bucket, not_yet, 5, {}, 96) == allowed());
    CHECK(store.client("HLEN", "b").integer == 99);  // one more, and when it shall be swept again

    CHECK(store(Op::check, bucket, 7 * second, 5, {}, 97) == allowed());
    CHECK(store.client("HLEN", "b").integer == 100);  // not before it has grown by half
    for (int key = 98; key < 145; ++key) {
        CHECK(store(Op::check, slow, 7 * second, 5, {}, key) == allowed());
    }
    // Swept are 63 that were fresh at 6 s; left are 32 slow ones, three that were taken later, and the foreign field.
    CHECK(store.client("HLEN", "b").integer < 96);
    for (int key = 0; key < 96; key += 3) {
        CHECK(store(Op::peek, slow, 7 * second, 1, {}, key) == rejected());
    }
    CHECK(store(Op::peek, bucket, not_yet, 5, {}, 96) == rejected());
    CHECK(store(Op::peek, bucket, 7 * second, 1, {}, 97) == rejected());
    CHECK(store.client("HGET", "b", "of somebody").text == "else");
    CHECK(store.client("HEXISTS", "b", Store<TokenBucket>::field(2)).integer == 0);
    CHECK(store.ttl() > 0);
}

TEST_CASE("a bucket far beyond its size is swept ever more rarely") {
    Store<FixedWindow> store(Layout::packed);
    const auto its = plan(FixedWindow{.limit = 1, .window = 1h});
    for (int key = 0; key < 3000; ++key) {
        CHECK(store(Op::check, its, 0, 1, {}, key) == allowed(0));
    }
    // At 97, 146, 220, 331, 497, 746, 1120, 1681 and 2522 entries.
    CHECK(store.info("commandstats", "cmdstat_hgetall:calls=").starts_with("cmdstat_hgetall:calls=9,"));
}

TEST_CASE("what a newer version wrote is not swept, and what is never fresh neither") {
    Store<TokenBucket> store(Layout::packed);
    const auto endless = plan(TokenBucket{.capacity = 255, .refill = per(1, microseconds(std::int64_t{1} << 44))});
    CHECK(store(Op::check, endless, 0, 255, {}, 0) == allowed(0));
    std::string newer = store.stored();
    newer[0] = '\xc1';
    store.client("HSET", "b", Store<TokenBucket>::field(1), newer);
    for (int key = 2; key < 100; ++key) {
        CHECK(store(Op::check, bucket, 0, 5, {}, key) == allowed(0));
    }
    CHECK(store(Op::check, bucket, (Micros{1} << 53) - 1, 5, {}, 100) == allowed(0));
    for (int key = 101; key < 160; ++key) {
        CHECK(store(Op::check, bucket, (Micros{1} << 53) - 1, 5, {}, key) == allowed(0));
    }
    CHECK(store.client("HLEN", "b").integer < 100);
    CHECK(store.client("HEXISTS", "b", Store<TokenBucket>::field(0)).integer == 1);
    CHECK(store.client("HGET", "b", Store<TokenBucket>::field(1)).text == newer);
}

TEST_CASE("states are small") {
    const auto size = [](const auto& algorithm, Layout layout) {
        Store<std::remove_cvref_t<decltype(algorithm)>> store(layout);
        CHECK(store(Op::check, plan(algorithm), 0, 1) == allowed());
        return store.stored().size();
    };
    const TokenBucket tokens{.capacity = 5, .refill = per_second(1)};
    const SlidingWindow sliding{.limit = 5, .window = 24h};
    const FixedWindow fixed{.limit = 5, .window = 24h};
    CHECK(size(tokens, Layout::per_key) == 20);
    CHECK(size(tokens, Layout::packed) == 24);
    CHECK(size(TokenBucket{.capacity = 5, .refill = per(1, 30h)}, Layout::packed) == 30);
    CHECK(size(sliding, Layout::packed) == 25);
    CHECK(size(fixed, Layout::packed) == 16);
    CHECK(size(AllOf{tokens, tokens, tokens}, Layout::packed) == 64);  // the longest that a small hash packs
}
