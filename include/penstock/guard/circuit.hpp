// SPDX-License-Identifier: MIT
// Circuit: a breaker that threads share; while it is closed a call costs a load and a count.
#ifndef PENSTOCK_GUARD_CIRCUIT_HPP
#define PENSTOCK_GUARD_CIRCUIT_HPP

#include <penstock/config.hpp>
#include <penstock/detail/random.hpp>
#include <penstock/detail/threads.hpp>
#include <penstock/guard/breaker.hpp>
#include <penstock/plan.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

/// What a circuit has seen.
struct CircuitStats {
    bool open = false;           ///< now
    std::uint64_t openings = 0;  ///< how often it opened
    std::uint64_t probes = 0;    ///< calls let through while it was open
    std::uint64_t refused = 0;   ///< calls that were not
};

/// Thread-safe. Of any number of threads that ask when a probe is due, one gets it. Calls that are well are counted
/// without waiting for other threads: of those that end at the same instant some are missed.
class Circuit {
public:
    explicit Circuit(const BreakerOptions& options) : breaker_(options) { detail::validate_breaker(options); }

    /// Whether to make a call; `answered` follows if so.
    [[nodiscard]] Pass ask(Micros now) noexcept {
        if (probe_at_.load(std::memory_order_relaxed) == closed) [[likely]] {
            return Pass::granted;
        }
        return ask_open(now);
    }

    /// A call that was granted is over.
    void answered(Pass pass, detail::Health health, Micros now) noexcept {
        if (pass == Pass::granted && health == detail::Health::well) [[likely]] {
            if (now >= next_tenth_.load(std::memory_order_relaxed)) [[unlikely]] {
                const Lock lock(lock_);
                pass_on(now);
            }
            // Not one step: calls that are counted at the same instant may count as one, and nobody waits.
            well_.store(well_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        } else if (pass == Pass::probe || health == detail::Health::unwell) {
            judge(pass, health, now);
        }
    }

    [[nodiscard]] CircuitStats stats() const noexcept {
        return {.open = probe_at_.load(std::memory_order_relaxed) != closed,
                .openings = openings_.load(std::memory_order_relaxed),
                .probes = probes_.load(std::memory_order_relaxed),
                .refused = refused_.load(std::memory_order_relaxed)};
    }

private:
    using Lock = detail::SpinLock<detail::Threads>;
    static constexpr Micros closed = ~Micros{0};

    [[nodiscard, gnu::noinline]] Pass ask_open(Micros now) noexcept {
        Pass pass = Pass::refused;
        if (now >= probe_at_.load(std::memory_order_relaxed)) {
            const Lock lock(lock_);
            pass = breaker_.ask(now, random_.next());
            publish();
        }
        std::atomic<std::uint64_t>& count = pass == Pass::refused ? refused_ : probes_;
        count.fetch_add(pass == Pass::granted ? 0 : 1, std::memory_order_relaxed);
        return pass;
    }

    [[gnu::noinline]] void judge(Pass pass, detail::Health health, Micros now) noexcept {
        const Lock lock(lock_);
        if (health == detail::Health::unknown) {
            breaker_.probe_again(now);
        } else if (pass == Pass::probe) {
            breaker_.probed(health == detail::Health::well);
        } else {
            pass_on(now);
            const bool was_open = breaker_.open();
            breaker_.failed(now, random_.next());
            openings_.fetch_add(breaker_.open() && !was_open ? 1 : 0, std::memory_order_relaxed);
        }
        publish();
    }

    /// Tells the breaker of the calls that were counted: they were made in the tenth that was the last to be seen.
    void pass_on(Micros now) noexcept {
        breaker_.succeeded(seen_, well_.exchange(0, std::memory_order_relaxed));
        seen_ = (std::max)(seen_, now);
        next_tenth_.store(breaker_.end_of_tenth(seen_), std::memory_order_relaxed);
    }

    void publish() noexcept {
        probe_at_.store(breaker_.open() ? breaker_.probe_at() : closed, std::memory_order_relaxed);
    }

    std::atomic<Micros> probe_at_{closed};
    std::atomic<Micros> next_tenth_{0};
    std::atomic<std::uint64_t> well_{0};  // calls of which the breaker does not know yet
    std::atomic<std::uint64_t> openings_{0};
    std::atomic<std::uint64_t> probes_{0};
    std::atomic<std::uint64_t> refused_{0};
    Lock::Flag lock_{0};

    // Under the lock.
    Micros seen_ = 0;
    detail::QuickRandom random_;
    Breaker breaker_;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_GUARD_CIRCUIT_HPP
