// SPDX-License-Identifier: MIT
// A flood of invented keys into a full table neither grows it nor frees those who are being limited. With PENSTOCK_LONG
// set the flood is 100 million keys into a table of one million, and what it did to each check's time is of interest.
#include "../support/invented_key.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <vector>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using penstock::Decision;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::ManualClock;
using penstock::per_hour;
using penstock::per_second;
using penstock::Plan;
using penstock::TokenBucket;

bool full_size() {
    return std::getenv("PENSTOCK_LONG") != nullptr;
}

/// A table, and a flood that would fill it a hundred times.
std::uint64_t max_keys() {
    return full_size() ? 1'000'000 : 20'000;
}

std::uint64_t keys_of_flood() {
    return 100 * max_keys();
}

/// What the flood does, and what those are subject to who are limited meanwhile.
struct Setting {
    const char* name;
    TokenBucket flood;
    std::uint64_t cost_of_flood;
    TokenBucket limited;
    std::uint64_t try_again_every;        // milliseconds
    std::uint64_t tables_per_second = 1;  // new keys, in multiples of what the table is made for
};

constexpr TokenBucket fast{.capacity = 10, .refill = per_second(10)};
constexpr TokenBucket slow{.capacity = 10, .refill = per_hour(10)};

constexpr TokenBucket slow_16{.capacity = 16, .refill = per_hour(16)};
constexpr TokenBucket slow_17{.capacity = 17, .refill = per_hour(17)};

constexpr std::uint64_t clients = 1000;

/// Numbers of the limited clients' keys, far from those of the flood.
InventedKey key_of(std::uint64_t client) {
    return InventedKey(client + (std::uint64_t{1} << 60));
}

/// Memory in use, in bytes; 0 where the system does not tell.
std::uint64_t resident() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    std::uint64_t resident_pages = 0;
    statm >> pages >> resident_pages;
    return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Nanoseconds for which this thread has computed: what other programs do at the same time does not count.
double thread_time() {
    std::timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

/// Those who are limited, and what a table with room for all answers them.
class Limited {
public:
    using Table = Limiter<TokenBucket, LocalStorage, ManualClock>;

    Limited(const Setting& setting, Table& flooded, const ManualClock& clock)
        : every_(setting.try_again_every), plan_(penstock::plan(setting.limited)), flooded_(flooded),
          calm_(setting.limited, LocalStorage{{.max_keys = 100 * clients, .seed = 2}}, clock) {
        for (std::uint64_t client = 0; client < clients; ++client) {
            compare(client, setting.limited.capacity);
        }
    }

    /// A millisecond passes: some try again.
    void tick(std::uint64_t now) {
        for (std::uint64_t client = now % every_; client < clients; client += every_) {
            compare(client, 1);
        }
    }

    /// Of how many every answer was right.
    std::uint64_t kept() {
        std::uint64_t kept = 0;
        for (std::uint64_t client = 0; client < clients; ++client) {
            compare(client, 0);
            kept += lost_[client] ? 0 : 1;
        }
        CHECK(calm_.storage().evictions() == 0);
        return kept;
    }

    /// Units that were admitted, of those that are admitted with room for all.
    [[nodiscard]] double admitted() const { return static_cast<double>(admitted_) / static_cast<double>(right_); }

private:
    void compare(std::uint64_t client, std::uint64_t cost) {
        const InventedKey key = key_of(client);
        const Decision flooded = flooded_.check(key, plan_, cost);
        const Decision right = calm_.check(key, cost);
        admitted_ += flooded.allowed ? cost : 0;
        right_ += right.allowed ? cost : 0;
        if (flooded != right) {
            lost_[client] = true;
        }
    }

    std::uint64_t every_;
    Plan<TokenBucket> plan_;
    Table& flooded_;
    Table calm_;
    std::vector<bool> lost_ = std::vector<bool>(clients);
    std::uint64_t admitted_ = 0;
    std::uint64_t right_ = 0;
};

/// New keys without end, each used once and never again.
class Flood {
public:
    explicit Flood(const Setting& setting)
        : setting_(setting), limiter_(setting.flood, LocalStorage{{.max_keys = max_keys(), .seed = 1}}, clock_),
          limited_(setting, limiter_, clock_) {}

    /// Tells how many of those who are limited kept their state.
    std::uint64_t run() {
        const double known = time_of_known();
        const double first = run_until(max_keys() / 2);
        run_until(keys_of_flood() / 2);
        const std::uint64_t memory = resident();
        run_until(keys_of_flood() - max_keys() / 2);
        const double last = run_until(keys_of_flood());
        CHECK(resident() <= memory + (4U << 20));

        const std::uint64_t kept = limited_.kept();
        const double evicted =
            static_cast<double>(limiter_.storage().evictions()) / static_cast<double>(keys_of_flood());
        std::printf("%-60s kept %4ju of %ju, admitted %5.2fx, evictions %3.0f%%; ns a check: known key %3.0f, empty "
                    "table %3.0f, flooded %3.0f\n",
                    setting_.name,
                    std::uintmax_t{kept},
                    std::uintmax_t{clients},
                    limited_.admitted(),
                    100 * evicted,
                    known,
                    first,
                    last);
        std::fflush(stdout);
        return kept;
    }

private:
    /// A check of a known client in a table of the same size, as full as it is made for.
    [[nodiscard]] static double time_of_known() {
        Limiter calm{fast, LocalStorage{{.max_keys = max_keys(), .seed = 1}}, ManualClock{}};
        for (std::uint64_t key = 0; key < max_keys(); ++key) {
            (void)calm.check(InventedKey(key));
        }
        const double start = thread_time();
        for (std::uint64_t key = 0; key < max_keys(); ++key) {
            (void)calm.check(InventedKey(key * 7919 % max_keys()));
        }
        return (thread_time() - start) / static_cast<double>(max_keys());
    }

    /// The flood goes on up to that key. Nanoseconds of each of its checks.
    double run_until(std::uint64_t end) {
        const std::uint64_t of_a_millisecond = max_keys() * setting_.tables_per_second / 1000;
        double time = 0;
        double timed = 0;
        while (next_ < end) {
            const bool timing = milliseconds_ % 4 == 0;
            const double start = timing ? thread_time() : 0;
            for (std::uint64_t i = 0; i < of_a_millisecond; ++i, ++next_) {
                (void)limiter_.check(InventedKey(next_), setting_.cost_of_flood);
            }
            time += timing ? thread_time() - start : 0;
            timed += timing ? static_cast<double>(of_a_millisecond) : 0;
            clock_.advance(1ms);
            limited_.tick(++milliseconds_);
        }
        return time / timed;
    }

    Setting setting_;
    ManualClock clock_;
    Limited::Table limiter_;
    Limited limited_;
    std::uint64_t next_ = 0;
    std::uint64_t milliseconds_ = 0;
};

std::uint64_t kept_through(const Setting& setting) {
    return Flood(setting).run();
}

TEST_CASE("a flood under one plan for all frees nobody who is limited") {
    CHECK(kept_through({"fast plan for all, keys used once", fast, 1, fast, 50}) == clients);
    CHECK(kept_through({"fast plan for all, keys used up", fast, 10, fast, 50}) == clients);
    CHECK(kept_through({"fast plan for all, keys used once, 50 times as many", fast, 1, fast, 50, 50}) == clients);
    CHECK(kept_through({"slow plan for all, keys used once", slow, 1, slow, 200}) == clients);
    CHECK(kept_through({"slow plan for all, keys used to 6 of 10", slow, 6, slow, 200}) == clients);
}

TEST_CASE("a flood that uses a smaller share of its limit frees nobody who has used up another") {
    CHECK(kept_through({"slow plans, keys used to 10 of 16, limited at 17", slow_16, 10, slow_17, 200}) == clients);
    CHECK(kept_through({"slow plans, keys used to 10 of 17, limited at 16", slow_17, 10, slow_16, 200}) == clients);
}

TEST_CASE("a flood under a fast plan frees nobody who is limited by a slow one") {
    CHECK(kept_through({"fast plan, slow for the limited, keys used once", fast, 1, slow, 200}) == clients);
    CHECK(kept_through({"fast plan, slow for the limited, keys used up", fast, 10, slow, 200}) == clients);
    CHECK(kept_through({"fast plan, slow for the limited, used up, 50 times as many", fast, 10, slow, 200, 50}) ==
          clients);
}

TEST_CASE("a flood under a slow plan frees nobody who is limited by a fast one") {
    CHECK(kept_through({"slow plan, fast for the limited, keys used once", slow, 1, fast, 50}) == clients);
}

TEST_CASE("what a flood frees when its keys are as far from fresh as those who are limited" *
          doctest::skip(!full_size())) {
    kept_through({"slow plan for all, keys used up", slow, 10, slow, 200});
    kept_through({"fast plan for all, keys used up, 50 times as many", fast, 10, fast, 50, 50});
}

}  // namespace
