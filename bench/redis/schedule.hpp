// SPDX-License-Identifier: MIT
// An open loop: checks come at 10,000 a second whether or not the last ones are answered, and each is timed from when
// it was due.
#ifndef PENSTOCK_BENCH_REDIS_SCHEDULE_HPP
#define PENSTOCK_BENCH_REDIS_SCHEDULE_HPP

#include <penstock/penstock.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>

#include "../core/ours.hpp"
#include "../report.hpp"
#include "clients.hpp"
#include "options.hpp"
#include "rig.hpp"
#include "turns.hpp"
#include "wire.hpp"

namespace bench {

/// When each check is due, and how late after that its answer came.
class Schedule {
public:
    using Clock = std::chrono::steady_clock;

    explicit Schedule(std::size_t checks) { latencies_.reserve(checks); }

    [[nodiscard]] Clock::time_point due(std::size_t check) const {
        return start_ + std::chrono::microseconds{100} * static_cast<std::int64_t>(check);
    }

    /// Answers come in the order of the checks, and on one thread.
    void answered(const Answer& answer) {
        const Clock::duration late = Clock::now() - due(latencies_.size());
        latencies_.push_back(std::chrono::duration<double, std::nano>{late}.count());
        tally_.add(answer);
    }

    [[nodiscard]] const Tally& tally() const noexcept { return tally_; }

    [[nodiscard]] double p99() {
        const auto at = latencies_.begin() + static_cast<std::ptrdiff_t>(latencies_.size() * 99 / 100);
        std::nth_element(latencies_.begin(), at, latencies_.end());
        return *at;
    }

private:
    Clock::time_point start_ = Clock::now() + std::chrono::milliseconds{1};
    std::vector<double> latencies_;
    Tally tally_;
};

[[nodiscard]] inline Figures schedule_ours(Rig& rig, std::size_t checks) {
    const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
    const std::vector<Name> names = names_of(clients);
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    Schedule schedule{checks};
    for (std::size_t i = 0; i < checks; ++i) {
        std::this_thread::sleep_until(schedule.due(i));
        rig.limiter.async_check(names[i].view(), 1, [&, last = i + 1 == checks](const penstock::Decision& decision) {
            schedule.answered(answer_of(decision));
            if (!last) return;
            const std::lock_guard lock{mutex};
            over = true;
            changed.notify_one();
        });
    }
    std::unique_lock lock{mutex};
    changed.wait(lock, [&] { return over; });
    rig.ledger.demand("the library, on schedule", clients, schedule.tally());
    return {.latency = schedule.p99()};
}

/// Sleeps until something comes, or the time is there.
inline void wait_for_input(const Wire& wire, Schedule::Clock::time_point until) {
    const auto left = (std::max)(until - Schedule::Clock::now(), Schedule::Clock::duration{0});
    const std::timespec wait{.tv_sec = static_cast<std::time_t>(left / std::chrono::seconds{1}),
                             .tv_nsec =
                                 static_cast<long>(left % std::chrono::seconds{1} / std::chrono::nanoseconds{1})};
    pollfd polled{.fd = wire.descriptor(), .events = POLLIN, .revents = 0};
    ppoll(&polled, 1, &wait, nullptr);
}

/// One thread that sends what is due, all at once, and reads what has come.
[[nodiscard]] inline Figures schedule_bare(Rig& rig, Wire& wire, std::size_t checks) {
    const std::vector<std::uint32_t> clients = rig.crowd.draw(checks);
    const Batch batch{*rig.script, clients};
    Schedule schedule{checks};
    const auto take = [&](std::span<const std::int64_t> reply) { schedule.answered(rig.script->answer(reply)); };
    std::size_t sent = 0;
    for (std::size_t received = 0; received < checks;) {
        const std::size_t begin = sent;
        while (sent < checks && schedule.due(sent) <= Schedule::Clock::now()) {
            ++sent;
        }
        wire.send(batch.slice(begin, sent));
        wait_for_input(wire, sent < checks ? schedule.due(sent) : schedule.due(checks) + std::chrono::seconds{1});
        received += wire.receive(take, MSG_DONTWAIT);
    }
    rig.ledger.demand("a bare open loop", clients, schedule.tally());
    return {.latency = schedule.p99()};
}

inline void measure_schedule(Report& report, const RedisOptions& options) {
    // Sleeps end when they should: the 50 us by which Linux lets them be late would hide what is measured.
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    Rig rig{options.clients};
    Wire wire{rig.server.port()};
    // Short blocks, of which the median is taken: what stops the machine for a while spoils few of them.
    constexpr std::size_t checks = 2500;
    const auto figures = take_turns("on schedule",
                                    {{"ours", [&] { return schedule_ours(rig, checks); }},
                                     {"a bare open loop", [&] { return schedule_bare(rig, wire, checks); }}},
                                    options.schedule_turns);
    const double ours = figures[0].latency;
    report.add({"p99 at 10,000/s / a bare open loop", ours, figures[1].latency, Unit::nanoseconds, at_most(1.2)});
    report.add({"p99 at 10,000/s / 2 ms", ours, 2e6, Unit::nanoseconds});
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_SCHEDULE_HPP
