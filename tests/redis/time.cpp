// SPDX-License-Identifier: MIT
// Clocks that jump: the server's, by which is decided, and the host's, on which nothing depends.
#include "../support/client.hpp"
#include "../support/expect.hpp"
#include "../support/fault.hpp"
#include "../support/random_trace.hpp"
#include "../support/redis_client.hpp"
#include "../support/redis_server.hpp"
#include "../support/shifted_time.hpp"
#include "../support/threads.hpp"

#include <penstock/penstock_redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using expect::allowed;
using expect::rejected;
using fault::await;
using fault::options_of;
using fault::Watched;
using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Layout;
using penstock::Limiter;
using penstock::per;
using penstock::per_day;
using penstock::RedisStorage;
using penstock::SlidingWindow;
using penstock::Source;
using penstock::StoreError;
using penstock::TokenBucket;
using std::chrono::microseconds;
using support::Pause;
using support::RedisClient;
using support::RedisServer;

// The server's time stands where it is put: then answers are exact.

struct Store {
    support::ShiftedTime time;
    RedisServer server{{}, time.environment()};
};

Store& store() {
    static Store shared;
    return shared;
}

constexpr microseconds base = 1'764'560'000'123'456us;  // in the fourth hour of a day
constexpr microseconds year = 365 * 24h;
constexpr std::array<Layout, 2> layouts{Layout::packed, Layout::per_key};

/// On an empty server.
RedisStorage storage_in(Layout layout) {
    RedisClient(store().server.port())("FLUSHALL");
    return RedisStorage{{.url = "redis://127.0.0.1:" + std::to_string(store().server.port()),
                         .timeout = 20s,
                         .connect_timeout = 20s,
                         .stall_timeout = 20s,
                         .layout = layout,
                         .expected_entries = 1000,
                         .on_failure = penstock::Deny{}}};
}

/// A limiter on the server's clock, and what each of its answers must be.
template <class Algorithm>
class Gateway {
public:
    Gateway(const Algorithm& algorithm, Layout layout) : limiter_(algorithm, storage_in(layout)), model_(algorithm) {
        go_to(base);
    }

    void go_to(microseconds time) {
        now_ = time;
        store().time.set(time);
    }

    Decision check(std::uint64_t cost = 1) {
        const Decision decision = limiter_.check("key", cost);
        CHECK(decision == model_.check(now_, cost));
        return decision;
    }

    Decision peek(std::uint64_t cost = 1) {
        const Decision decision = limiter_.peek("key", cost);
        CHECK(decision == support::Client<Algorithm>(model_).check(now_, cost));
        return decision;
    }

    /// How many of ten checks are allowed.
    std::uint64_t allowed_now() {
        std::uint64_t count = 0;
        for (int i = 0; i < 10; ++i) {
            count += check().allowed ? 1 : 0;
        }
        return count;
    }

private:
    Limiter<Algorithm, RedisStorage> limiter_;
    support::Client<Algorithm> model_;
    microseconds now_{0};
};

/// Does it with every algorithm, each of five units a minute, in both layouts.
template <class Body>
void with_every_limit(const Body& body) {
    for (const Layout layout : layouts) {
        const TokenBucket bucket{.capacity = 5, .refill = per(5, 1min)};
        body(bucket, layout);
        body(SlidingWindow{.limit = 5, .window = 1min}, layout);
        body(FixedWindow{.limit = 5, .window = 1min}, layout);
        body(AllOf{TokenBucket{.capacity = 7, .refill = per(1, 10s)}, FixedWindow{.limit = 5, .window = 1min}}, layout);
        body(AllOf{SlidingWindow{.limit = 5, .window = 1min}, bucket}, layout);
    }
}

TEST_CASE("a server's clock that stands is what the test made of it") {
    store().time.set(base);
    const auto time = RedisClient(store().server.port())("TIME").items;
    REQUIRE(time.size() == 2);
    CHECK(time[0].text + '.' + time[1].text == "1764560000.123456");
}

TEST_CASE("a server whose clock jumps back mints nothing, and says when there is room by the clock it then has") {
    with_every_limit([](const auto& algorithm, Layout layout) {
        for (const microseconds back : {1us, 999'999us, 59s + 0us, 1h + 1us, 24h + 0us, 10 * year}) {
            Gateway gateway(algorithm, layout);
            CHECK(gateway.check(5) == allowed(0));
            const microseconds wait = gateway.check() == rejected() ? gateway.check().retry_after : 0us;
            gateway.go_to(base - back);
            CHECK(gateway.allowed_now() == 0);
            CHECK(gateway.check() == rejected(back + wait));
            gateway.go_to(base + wait - 1us);
            CHECK(gateway.check() == rejected(1us));
            gateway.go_to(base + wait);
            CHECK(gateway.check() == allowed());
        }
    });
}

TEST_CASE("what was left before a server's clock jumps back is left then, and once") {
    with_every_limit([](const auto& algorithm, Layout layout) {
        for (const microseconds back : {1us, 59s + 0us, 24h + 1us, 10 * year}) {
            Gateway gateway(algorithm, layout);
            CHECK(gateway.check(3) == allowed(2));
            gateway.go_to(base - back);
            CHECK(gateway.peek(2) == allowed(0));
            CHECK(gateway.allowed_now() == 2);
            gateway.go_to(base);
            CHECK(gateway.allowed_now() == 0);
        }
    });
}

TEST_CASE("a server whose clock jumps ahead gives what the time gives, no more than a full limit, and nothing when it "
          "is back") {
    with_every_limit([](const auto& algorithm, Layout layout) {
        for (const microseconds ahead : {1us, 12s - 1us, 12s + 0us, 59s + 0us, 2min + 0us, 1h + 0us, 10 * year}) {
            Gateway gateway(algorithm, layout);
            CHECK(gateway.check(5) == allowed(0));
            gateway.go_to(base + ahead);
            const std::uint64_t given = gateway.allowed_now();
            CHECK(given <= 5);
            CHECK((given == 5 || ahead < 2min));
            gateway.go_to(base);
            CHECK(gateway.allowed_now() == 0);
        }
    });
}

TEST_CASE("clients whom the server dropped while its clock was ahead have one full limit when it is back") {
    for (const Layout layout : layouts) {
        store().time.set(base);
        Limiter limiter{TokenBucket{.capacity = 5, .refill = per(5, 1min)}, storage_in(layout)};
        CHECK(limiter.check("key", 5) == allowed(0));
        store().time.set(base + 1h);
        CHECK(limiter.peek("key", 5) == allowed(0));
        store().time.set(base);
        CHECK(expect::allowed_of(10, limiter, "key") <= 5);
        CHECK(limiter.check("key") == rejected(12s));
    }
}

template <class Algorithm>
void jump_at_random(std::uint64_t seed, const Algorithm& algorithm, Layout layout) {
    Gateway gateway(algorithm, layout);
    support::Random random = trace::random_of(30, seed);
    microseconds now = base;
    Decision last{};
    for (int step = 0; step < 60; ++step) {
        INFO("PENSTOCK_SEED=", trace::seed_offset(), ", trace ", seed, ", step ", step);
        const microseconds far = trace::micros(random.log_between(1, trace::count_of(10 * year)));
        const std::array<microseconds, 6> jumps{0us, last.retry_after, last.retry_after - 1us, -far, far, base - now};
        now = std::clamp(now + jumps[random.below(jumps.size())], base - 20 * year, base + 20 * year);
        gateway.go_to(now);
        // Each check costs something, so that what the server drops is never remembered by the model.
        last = gateway.check(random.between(1, 5));
    }
}

TEST_CASE("a server whose clock jumps at random decides as by the book, to the microsecond") {
    std::uint64_t seed = 0;
    with_every_limit([&](const auto& algorithm, Layout layout) {
        for (int trace = 0; trace < 5; ++trace) {
            jump_at_random(++seed, algorithm, layout);
        }
    });
}

/// The server's clock jumps about within an hour while it lives.
class JumpingAbout {
public:
    JumpingAbout() = default;
    JumpingAbout(const JumpingAbout&) = delete;
    JumpingAbout& operator=(const JumpingAbout&) = delete;

    ~JumpingAbout() {
        stopping_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> stopping_{false};
    std::thread thread_{[this] {
        support::Random random(1);
        while (!stopping_) {
            store().time.set(base + trace::micros(random.below(3'600'000'000)));
            std::this_thread::sleep_for(1ms);
        }
    }};
};

template <class Algorithm>
void check_exactly_500_of_1200(const Algorithm& algorithm, Layout layout) {
    store().time.set(base);
    Limiter limiter{algorithm, storage_in(layout)};
    const JumpingAbout jumping;
    const auto admitted = threads::results_of(4, [&](std::size_t) { return expect::allowed_of(300, limiter, "key"); });
    CHECK(admitted[0] + admitted[1] + admitted[2] + admitted[3] == 500);
}

TEST_CASE("threads admit exactly the limit while the server's clock jumps about in its window") {
    for (const Layout layout : layouts) {
        const TokenBucket bucket{.capacity = 500, .refill = per_day(1)};
        const FixedWindow fixed{.limit = 500, .window = 24h};
        check_exactly_500_of_1200(bucket, layout);
        check_exactly_500_of_1200(SlidingWindow{.limit = 500, .window = 24h}, layout);
        check_exactly_500_of_1200(fixed, layout);
        check_exactly_500_of_1200(AllOf{bucket, fixed}, layout);
    }
}

// The host's clock: these tests run again in processes of their own, whose wall clock jumps.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PENSTOCK_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PENSTOCK_TEST_SANITIZED 1
#endif
#endif
#ifdef PENSTOCK_TEST_SANITIZED
constexpr bool can_preload = false;
#else
constexpr bool can_preload = true;
#endif

/// The wall clock of this process.
class HostTime {
public:
    explicit HostTime(const char* path) : shift_(support::map_shift(path)) { REQUIRE(shift_ != nullptr); }

    /// Sets it to so long after the true time.
    void jump(microseconds from_true_time) {
        shift_->micros = from_true_time.count();
        const microseconds error = wall_less_steady() - true_wall_less_steady_ - from_true_time;
        REQUIRE(std::chrono::abs(error) < 10min);  // the two clocks are not read at the same time
    }

private:
    static microseconds wall_less_steady() {
        using std::chrono::duration_cast;
        return duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch()) -
               duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch());
    }

    support::SharedShift* shift_;
    microseconds true_wall_less_steady_ = wall_less_steady();
};

/// How the test that is running ends in a process of its own.
int status_of_this_test_with(const std::vector<std::string>& environment) {
    std::vector<std::string> words{"env"};
    words.insert(words.end(), environment.begin(), environment.end());
    words.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
    words.push_back(std::string("--test-case=") + doctest::getContextOptions()->currentTest->m_name);
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::execvp(arguments[0], arguments.data());
        ::_exit(127);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
}

/// Runs a test where the host's clock jumps.
template <class Test>
void where_the_host_jumps(const Test& test) {
    const char* const path = std::getenv(support::shift_variable);
    if (path != nullptr) {
        HostTime host(path);
        test(host);
    } else if (can_preload) {
        const support::ShiftedTime time;
        CHECK(status_of_this_test_with(time.environment()) == 0);
    } else {
        MESSAGE("skipped: no library can be preloaded before a sanitizer's own");
    }
}

/// Waits until a load is under way: on a busy machine its threads may be late.
void begin(const Watched& watched) {
    const auto before = watched.ended(StoreError::none);
    CHECK(await([&] { return watched.ended(StoreError::none) > before + 10; }));
}

constexpr std::array<microseconds, 5> jumps{-10 * year, 10 * year, -1h, 1h, 0s};

TEST_CASE("the host's clock may jump while calls are made and nothing is noticed") {
    where_the_host_jumps([](HostTime& host) {
        const RedisServer server;
        auto options = options_of(server.port());
        options.timeout = 20s;
        options.connect_timeout = 20s;
        options.stall_timeout = 20s;
        Watched watched(options);
        const fault::Load load(watched);
        begin(watched);
        std::uint64_t left = fault::limit;
        for (const microseconds jump : jumps) {
            for (int i = 0; i < 100; ++i) {
                CHECK(watched.check() == allowed(--left));
            }
            host.jump(jump);
        }
        CHECK(watched.check() == allowed(--left));
        CHECK(watched.stats().losses == 0);
        CHECK(watched.stats().connects == 1);
    });
}

TEST_CASE("calls to a server that hangs end in time though the host's clock jumps") {
    where_the_host_jumps([](HostTime& host) {
        RedisServer server;
        Watched watched(options_of(server.port()));
        for (const microseconds jump : jumps) {
            REQUIRE(watched.recovers());
            const fault::Load load(watched);
            begin(watched);
            server.stop();
            std::atomic<int> told{0};
            for (int i = 0; i < 10; ++i) {
                watched.limiter().async_check("handler", 1, [&](const Decision&) { ++told; });
            }
            host.jump(jump);
            CHECK(await([&] { return told == 10; }));
            CHECK(watched.check().source == Source::fail_open);
            // Silence is a loss, and a connection is tried that hangs as well, and then another one.
            const auto connects = watched.stats().connects;
            CHECK(await([&] { return watched.stats().connects >= connects + 2; }));
            server.resume();
        }
        CHECK(watched.recovers());
        CHECK(watched.ended(StoreError::timeout) > 0);
        CHECK(watched.stats().losses >= jumps.size());
    });
}

TEST_CASE("calls in flight do not end before their time though the host's clock jumps") {
    where_the_host_jumps([](HostTime& host) {
        const RedisServer server;
        auto options = options_of(server.port());
        options.timeout = 1min;
        options.connect_timeout = 1min;
        options.stall_timeout = 1min;
        Watched watched(options);
        REQUIRE(watched.recovers());
        std::atomic<int> told{0};
        std::atomic<int> answered{0};
        const auto tell = [&](const Decision& decision) {
            answered += decision.source == Source::store ? 1 : 0;
            ++told;
        };
        {
            const Pause pause(server);
            for (const microseconds jump : jumps) {
                watched.limiter().async_check("before", 1, tell);
                host.jump(jump);
                watched.limiter().async_check("after", 1, tell);  // and the engine looks at the time
            }
        }
        CHECK(await([&] { return told == 10; }));
        CHECK(answered == 10);
    });
}

TEST_CASE("a server that dies is missed and found again though the host's clock jumps") {
    where_the_host_jumps([](HostTime& host) {
        RedisServer server;
        Watched watched(options_of(server.port()));
        for (const microseconds jump : jumps) {
            REQUIRE(watched.recovers());
            server.kill();
            CHECK(watched.fails_with(StoreError::unavailable));
            host.jump(jump);
            CHECK(watched.fails_with(StoreError::unavailable));
            const auto connects = watched.stats().connects;
            CHECK(await([&] { return watched.stats().connects >= connects + 2; }));
            server.restart();
        }
        CHECK(watched.recovers());
        CHECK(watched.stats().losses == jumps.size());
    });
}

TEST_CASE("the system clock of a limiter runs on though the host's jumps") {
    where_the_host_jumps([](HostTime& host) {
        const RedisServer server;
        auto options = options_of(server.port());
        options.timeout = 20s;
        options.connect_timeout = 20s;
        options.stall_timeout = 20s;
        const penstock::SystemClock clock;
        Limiter limiter{TokenBucket{.capacity = 1, .refill = per_day(1)}, RedisStorage(options), clock};
        CHECK(limiter.check("key") == allowed(0));
        microseconds last = clock.now();
        for (const microseconds jump : jumps) {
            host.jump(jump);
            CHECK(limiter.check("key") == rejected());
            CHECK(clock.now() >= last);
            CHECK(clock.now() - last < 10min);
            last = clock.now();
        }
    });
}

}  // namespace
