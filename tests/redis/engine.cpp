// SPDX-License-Identifier: MIT
// The engine over a real server: each call gets its own answer, once, whoever asks, however, and whatever ends.
#include <penstock/redis/engine.hpp>

#include "../support/echo.hpp"
#include "../support/fault.hpp"
#include "../support/proxy.hpp"
#include "../support/random.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"
#include "../support/threads.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using fault::await;
using fault::ended;
using penstock::StoreError;
using penstock::redis::Call;
using penstock::redis::Engine;
using penstock::redis::Settings;
using penstock::redis::Stats;
using support::ask;
using support::CountedEcho;
using support::Echo;
using support::engine_settings;
using support::Pause;
using support::RedisClient;
using support::Tally;

support::RedisServer& server() {
    static support::RedisServer shared;
    return shared;
}

TEST_CASE("a caller gets an answer") {
    Engine engine(engine_settings(server().port()));
    for (int i = 0; i < 1000; ++i) {
        Echo echo(i);
        ask(engine, echo);
        CHECK(echo.answered());
    }
    CHECK(ended(engine.stats(), StoreError::none) == 1000);
}

TEST_CASE("a batch gets its answers in one go") {
    Engine engine(engine_settings(server().port()));
    std::vector<std::unique_ptr<Echo>> echoes;
    std::vector<Call*> calls;
    for (int i = 0; i < 1000; ++i) {
        calls.push_back(echoes.emplace_back(std::make_unique<Echo>(i)).get());
    }
    engine.run(calls, engine.deadline());
    for (const auto& echo : echoes) {
        CHECK(echo->answered());
    }
}

TEST_CASE("callers of all kinds at once get their own answers") {
    Engine engine(engine_settings(server().port()));
    Tally tally;
    std::atomic<int> wrong{0};
    threads::together(6, [&](std::size_t thread) {
        for (int i = 0; i < 2000; ++i) {
            const auto number = static_cast<std::int64_t>(thread) * 10'000 + i;
            if (thread % 2 == 0) {
                Echo echo(number);
                ask(engine, echo);
                wrong += echo.answered() ? 0 : 1;
            } else {
                engine.submit(*new CountedEcho(number, tally));
            }
        }
    });
    CHECK(wrong == 0);
    CHECK(await([&] { return tally.all() == 6000; }));
    CHECK(tally.answered == 6000);
    const Stats stats = engine.stats();
    CHECK(ended(stats, StoreError::none) == 12'000);
    CHECK(stats.losses == 0);
}

TEST_CASE("handlers run on one thread, which is none of the callers'") {
    struct Noted final : Echo {
        Noted(std::mutex& mutex, std::set<std::thread::id>& ids, std::atomic<int>& count)
            : Echo(1), mutex_(mutex), ids_(ids), count_(count) {}
        void finished() noexcept override {
            {
                const std::lock_guard lock(mutex_);
                ids_.insert(std::this_thread::get_id());
            }
            std::atomic<int>& count = count_;
            delete this;
            ++count;
        }
        std::mutex& mutex_;
        std::set<std::thread::id>& ids_;
        std::atomic<int>& count_;
    };
    std::mutex mutex;
    std::set<std::thread::id> ids;
    std::set<std::thread::id> callers;
    std::atomic<int> count{0};
    Engine engine(engine_settings(server().port()));
    threads::together(4, [&](std::size_t) {
        for (int i = 0; i < 200; ++i) {
            engine.submit(*new Noted(mutex, ids, count));
            Echo echo(i);
            ask(engine, echo);
        }
        const std::lock_guard lock(mutex);
        callers.insert(std::this_thread::get_id());
    });
    REQUIRE(await([&] { return count == 800; }));
    const std::lock_guard lock(mutex);
    REQUIRE(ids.size() == 1);
    CHECK(callers.count(*ids.begin()) == 0);
}

TEST_CASE("a handler may ask again") {
    struct Chain final : Echo {
        Chain(Engine& engine, int left, std::atomic<int>& done)
            : Echo(left), engine_(engine), left_(left), done_(done) {}
        void finished() noexcept override {
            CHECK(answered());
            if (left_ > 0) {
                engine_.submit(*new Chain(engine_, left_ - 1, done_));
            } else {
                ++done_;
            }
            delete this;
        }
        Engine& engine_;
        int left_;
        std::atomic<int>& done_;
    };
    std::atomic<int> done{0};
    Engine engine(engine_settings(server().port()));
    for (int i = 0; i < 10; ++i) {
        engine.submit(*new Chain(engine, 100, done));
    }
    CHECK(await([&] { return done == 10; }));
}

TEST_CASE("a handler is not kept waiting by a caller who waits for something else") {
    // The caller's answer is held up; the other call has failed at once, since there may be but one.
    Settings settings = engine_settings(server().port());
    settings.most_in_flight = 1;
    Engine engine(settings);
    Echo first(1);
    ask(engine, first);
    REQUIRE(first.answered());
    const std::uint64_t sent = engine.stats().sent;
    Pause pause(server());
    std::thread caller([&] {
        Echo echo(2);
        ask(engine, echo);
        CHECK(echo.answered());
    });
    CHECK(await([&] { return engine.stats().sent == sent + 1; }));
    Tally tally;
    engine.submit(*new CountedEcho(3, tally));
    CHECK(await([&] { return tally.failed == 1; }));
    CHECK(ended(engine.stats(), StoreError::overloaded) == 1);
    pause.end();
    caller.join();
}

TEST_CASE("above the most calls in flight, calls fail at once, and are counted") {
    Settings settings = engine_settings(server().port());
    settings.most_in_flight = 100;
    Engine engine(settings);
    Echo warm(0);
    ask(engine, warm);
    Tally tally;
    {
        const Pause pause(server());
        for (int i = 0; i < 150; ++i) {
            engine.submit(*new CountedEcho(i, tally));
        }
        CHECK(await([&] { return tally.failed == 50; }));
        CHECK(tally.answered == 0);
        Echo blocking(1);
        ask(engine, blocking);
        CHECK(blocking.error() == StoreError::overloaded);
    }
    CHECK(await([&] { return tally.answered == 100; }));
    CHECK(tally.failed == 50);
    CHECK(ended(engine.stats(), StoreError::overloaded) == 51);
}

TEST_CASE("very many calls in flight are one burst of answers, and no trouble") {
    constexpr int count = 200'000;
    Settings settings = engine_settings(server().port());
    settings.most_in_flight = std::size_t{1} << 20;
    settings.connection.stall_timeout = 20'000'000;  // submitting them takes a while in slow builds
    Engine engine(settings);
    Tally tally;
    {
        const Pause pause(server());
        for (int i = 0; i < count; ++i) {
            engine.submit(*new CountedEcho(i, tally));
        }
    }
    CHECK(await([&] { return tally.all() == count; }));
    CHECK(tally.answered == count);
    CHECK(engine.stats().losses == 0);
}

TEST_CASE("late answers are counted and go to nobody") {
    Engine engine(engine_settings(server().port(), 50'000));
    Echo warm(0);
    ask(engine, warm);
    REQUIRE(warm.answered());
    Tally tally;
    {
        const Pause pause(server());
        for (int i = 0; i < 10; ++i) {
            engine.submit(*new CountedEcho(i, tally));
        }
        Echo blocking(10);
        ask(engine, blocking);
        CHECK(blocking.error() == StoreError::timeout);
        CHECK(await([&] { return tally.failed == 10; }));
    }
    // Nobody asks meanwhile: late answers are read nevertheless.
    CHECK(await([&] { return engine.stats().late == 11; }));
    CHECK(ended(engine.stats(), StoreError::timeout) == 11);
    CHECK(engine.stats().losses == 0);
    Echo after(11);
    ask(engine, after);
    CHECK(after.answered());
}

TEST_CASE("a caller who leads and gives up leaves a connection that is well") {
    Settings settings = engine_settings(server().port(), 20'000);
    settings.connection.stall_timeout = 300'000;
    Engine engine(settings);
    Echo warm(0);
    ask(engine, warm);
    {
        const Pause pause(server());
        Echo blocking(1);
        ask(engine, blocking);
        CHECK(blocking.error() == StoreError::timeout);
    }
    CHECK(await([&] { return engine.stats().late == 1; }));
    const auto end = fault::Clock::now() + 400ms;  // past the time after which silence is taken for a stall
    while (fault::Clock::now() < end) {
        std::this_thread::sleep_for(10ms);
    }
    CHECK(engine.stats().losses == 0);
}

TEST_CASE("a script that the server does not know is loaded once") {
    Engine engine(engine_settings(server().port()));
    RedisClient client(server().port());
    for (int round = 0; round < 5; ++round) {
        const std::uint64_t before = engine.stats().loads;
        client("SCRIPT", "FLUSH");
        Tally tally;
        {
            const Pause pause(server());
            for (int i = 0; i < 100; ++i) {
                engine.submit(*new CountedEcho(i, tally));
            }
        }
        CHECK(await([&] { return tally.answered == 100; }));
        CHECK(engine.stats().loads == before + 1);
    }
    CHECK(ended(engine.stats(), StoreError::none) == 500);
}

TEST_CASE("destruction finishes every call once, before it returns") {
    for (int round = 0; round < 20; ++round) {
        Tally tally;
        std::optional<Pause> pause;
        if (round % 2 == 0) {
            pause.emplace(server());  // or some answers come in the middle of it
        }
        {
            Engine engine(engine_settings(server().port()));
            threads::together(4, [&](std::size_t) {
                for (int i = 0; i < 1000; ++i) {
                    engine.submit(*new CountedEcho(i, tally));
                }
            });
        }
        CHECK(tally.all() == 4000);
        CHECK(tally.wrong == 0);
    }
}

TEST_CASE("a handler may destroy the engine: every other call is finished when it has") {
    struct Destroyer final : Echo {
        Destroyer(std::unique_ptr<Engine>& engine, const Tally& tally, std::atomic<int>& seen)
            : Echo(1), engine_(engine), tally_(tally), seen_(seen) {}
        void finished() noexcept override {
            engine_.reset();
            std::atomic<int>& seen = seen_;
            const int told = tally_.all();
            delete this;
            seen = told;
        }
        std::unique_ptr<Engine>& engine_;
        const Tally& tally_;
        std::atomic<int>& seen_;
    };
    for (int round = 0; round < 20; ++round) {
        Tally tally;
        std::atomic<int> seen{-1};
        auto engine = std::make_unique<Engine>(engine_settings(server().port()));
        Engine& raw = *engine;
        {
            const Pause pause(server());
            for (int i = 0; i < 500; ++i) {
                raw.submit(*new CountedEcho(i, tally));
            }
            raw.submit(*new Destroyer(engine, tally, seen));
            for (int i = 0; i < 500; ++i) {
                raw.submit(*new CountedEcho(i, tally));
            }
        }
        REQUIRE(await([&] { return seen >= 0; }));
        CHECK(seen == 1000);
        CHECK(tally.wrong == 0);
    }
}

TEST_CASE("a call that is taken back is told nothing") {
    Engine engine(engine_settings(server().port()));
    Echo warm(0);
    ask(engine, warm);
    Tally tally;
    {
        const Pause pause(server());
        for (int i = 0; i < 10; ++i) {
            Echo gone(i);
            engine.submit(gone);
            engine.submit(*new CountedEcho(i, tally));
            engine.cancel(gone);
        }
    }
    CHECK(await([&] { return tally.answered == 10; }));
    CHECK(await([&] { return engine.stats().late == 10; }));
    CHECK(engine.stats().cancelled == 10);
    CHECK(tally.all() == 10);
}

TEST_CASE("answers cut at every byte are the same answers") {
    support::Proxy proxy(server().port());
    Engine engine(engine_settings(proxy.port()));
    for (std::size_t at = 1; at <= 40; ++at) {
        proxy.cut_by([at, first = true](std::size_t waiting) mutable {
            first = !first;
            return first ? waiting : at;
        });
        std::vector<std::unique_ptr<Echo>> echoes;
        std::vector<Call*> calls;
        for (int i = 0; i < 20; ++i) {
            calls.push_back(echoes.emplace_back(std::make_unique<Echo>(i * 1001)).get());
        }
        engine.run(calls, engine.deadline());
        for (const auto& echo : echoes) {
            CHECK(echo->answered());
        }
    }
    CHECK(engine.stats().losses == 0);
}

TEST_CASE("answers cut, merged and delayed at random are the same answers") {
    support::Proxy proxy(server().port());
    Engine engine(engine_settings(proxy.port()));
    support::Random random(20);
    proxy.cut_by([&random](std::size_t waiting) -> std::size_t {
        return random.chance(20) ? 0 : random.chance(50) ? waiting : random.log_between(1, waiting);
    });
    Tally tally;
    std::atomic<int> wrong{0};
    threads::together(4, [&](std::size_t thread) {
        for (int i = 0; i < 300; ++i) {
            Echo echo(static_cast<std::int64_t>(thread) * 1'000'000 + i);
            engine.submit(*new CountedEcho(i, tally));
            if (i % 10 == 0) {
                ask(engine, echo);
                wrong += echo.answered() ? 0 : 1;
            }
        }
    });
    CHECK(await([&] { return tally.all() == 1200; }));
    CHECK(tally.answered == 1200);
    CHECK(wrong == 0);
    CHECK(engine.stats().losses == 0);
}

TEST_CASE("one byte after the other is slow, and right") {
    support::Proxy proxy(server().port());
    Engine engine(engine_settings(proxy.port()));
    proxy.cut_by([](std::size_t) -> std::size_t { return 1; });
    for (int i = 0; i < 10; ++i) {
        Echo echo(i);
        ask(engine, echo);
        CHECK(echo.answered());
    }
}

TEST_CASE("connections cut under load fail the calls that were under way, and no other") {
    support::Proxy proxy(server().port());
    Engine engine(engine_settings(proxy.port(), 5'000'000));
    Tally tally;
    std::atomic<bool> stop{false};
    std::thread load([&] {
        for (int i = 0; !stop; ++i) {
            Echo echo(i);
            ask(engine, echo);
            ++(echo.answered() ? tally.answered : echo.right() ? tally.failed : tally.wrong);
            engine.submit(*new CountedEcho(i, tally));
        }
    });
    for (int cut = 0; cut < 10; ++cut) {
        const int before = tally.answered;
        CHECK(await([&] { return tally.answered > before + 20; }));
        proxy.cut_connections();
    }
    stop = true;
    load.join();
    CHECK(await([&] {
        const Stats stats = engine.stats();
        return static_cast<std::uint64_t>(tally.all()) ==
               ended(stats, StoreError::none) + ended(stats, StoreError::unavailable);
    }));
    CHECK(tally.wrong == 0);
    CHECK(engine.stats().losses >= 5);
}

}  // namespace
