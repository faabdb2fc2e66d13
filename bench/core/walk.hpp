// SPDX-License-Identifier: MIT
// Lanes over many clients: a stream is walked pass by pass, and a plain count per client says what the answers must be.
#ifndef PENSTOCK_BENCH_CORE_WALK_HPP
#define PENSTOCK_BENCH_CORE_WALK_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../harness.hpp"
#include "../keys.hpp"
#include "../peers/peer.hpp"
#include "../report.hpp"

namespace bench {

/// Nothing comes back within a run, nothing is rejected, and no client is forgotten as idle.
inline constexpr Limit slow_limit{.capacity = 1'000'000, .micros_per_unit = 3'600'000'000};

inline constexpr std::size_t most_threads = 2;

using RunKeys = std::function<Tally(std::span<const Key>)>;

/// Counts what each client has used of slow_limit. Every client has used one unit when it starts.
class WalkLedger {
public:
    /// `forgotten`: how many clients the contender has dropped for want of room, a few in ten million.
    explicit WalkLedger(std::size_t clients, std::function<std::uint64_t()> forgotten)
        : used_(clients, 1), forgotten_{std::move(forgotten)} {}

    /// The answers must add up exactly, but that a forgotten client starts anew.
    void demand(const std::string& name, std::span<const std::uint32_t> clients, const Tally& tally) {
        std::uint64_t remaining = 0;
        for (const std::uint32_t client : clients) {
            remaining += slow_limit.capacity - ++used_[client];
            most_used_ = (std::max)(most_used_, used_[client]);
        }
        const std::uint64_t slack = 2 * forgotten_() * most_used_;
        const bool adds_up = tally.remaining >= remaining && tally.remaining - remaining <= slack;
        if (tally.allowed == clients.size() && adds_up) return;
        throw WrongAnswer{name + ": the answers do not add up"};
    }

private:
    std::vector<std::uint32_t> used_;
    std::function<std::uint64_t()> forgotten_;
    std::uint32_t most_used_ = 1;
};

/// Every client's first check, in the order of their numbers, so that no map holds them in the order of a stream.
inline void admit_all(std::size_t clients, const RunKeys& run) {
    Report::progress("filling");
    std::array<Key, 4096> block;
    for (std::size_t done = 0; done < clients;) {
        const std::size_t size = (std::min)(block.size(), clients - done);
        for (std::size_t i = 0; i < size; ++i) {
            block[i] = key_of(done + i);
        }
        run(std::span{block}.first(size));
        done += size;
    }
}

/// Where a lane stands in its stream. The stream is cut into as many equal shares as there can be threads, and each
/// thread walks its own; a lane of one thread walks either the whole stream or only the first share.
class Walk {
public:
    Walk(const Stream& stream, std::size_t pass, std::size_t shares)
        : stream_{&stream}, pass_{pass}, share_{stream.keys.size() / shares} {}

    [[nodiscard]] std::span<const Key> keys(std::size_t thread) const {
        return std::span{stream_->keys}.subspan(thread * share_ + at_, pass_);
    }

    [[nodiscard]] std::span<const std::uint32_t> clients(std::size_t thread) const {
        return std::span{stream_->clients}.subspan(thread * share_ + at_, pass_);
    }

    /// The same, beginning half a share later: for the second lane on one contender, which must not find in the cache
    /// what the first has just used.
    [[nodiscard]] Walk elsewhere() const {
        Walk other = *this;
        other.at_ = share_ / pass_ / 2 * pass_;
        return other;
    }

    void advance() { at_ = at_ + 2 * pass_ <= share_ ? at_ + pass_ : 0; }

private:
    const Stream* stream_;
    std::size_t pass_;
    std::size_t share_;
    std::size_t at_ = 0;
};

/// The ledger is that of the contender behind `run`, shared by all lanes on it; the floor has none.
[[nodiscard]] inline Lane walk_lane(
    std::string name, RunKeys run, WalkLedger* ledger, Walk start, std::size_t threads = 1) {
    struct State {
        Walk walk;
        std::array<Tally, most_threads> tallies{};
    };
    const auto state = std::make_shared<State>(State{start});
    const auto pass = [state, run = std::move(run)](int thread) {
        const auto index = static_cast<std::size_t>(thread);
        state->tallies[index] = run(state->walk.keys(index));
    };
    const auto verify = [state, ledger, name, threads] {
        for (std::size_t i = 0; i < threads && ledger != nullptr; ++i) {
            ledger->demand(name, state->walk.clients(i), state->tallies[i]);
        }
        state->walk.advance();
    };
    const std::size_t checks = start.keys(0).size();
    return {.name = name, .checks = checks, .pass = pass, .verify = verify, .threads = static_cast<int>(threads)};
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_CORE_WALK_HPP
