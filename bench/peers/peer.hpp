// SPDX-License-Identifier: MIT
// What every contender is measured through: functions whose loops live in the contender's own translation unit.
#ifndef PENSTOCK_BENCH_PEERS_PEER_HPP
#define PENSTOCK_BENCH_PEERS_PEER_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bench {

/// A client's name, 16 bytes: one more than the small buffer of libstdc++'s std::string holds.
struct Key {
    std::array<char, 16> bytes;

    [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), bytes.size()}; }
};

/// A token bucket: `capacity` units, one of which comes back every `micros_per_unit`.
struct Limit {
    std::uint64_t capacity;
    std::int64_t micros_per_unit;
};

/// What a contender is told when it is made. Only the floor takes `bytes`: the memory it spreads its lines over.
struct Setup {
    Limit limit;
    std::size_t keys = 0;  // 0: not known beforehand
    std::size_t bytes = 0;
};

inline constexpr std::int64_t never = INT64_MAX;

struct Answer {
    bool allowed = false;
    std::uint64_t remaining = 0;
    std::int64_t retry_after = 0;
    std::int64_t reset_after = 0;

    friend bool operator==(const Answer&, const Answer&) = default;
};

/// One check of a recorded trace; `now` never goes back.
struct Step {
    Key key;
    std::uint64_t cost;
    std::int64_t now;
};

/// The sums of all answers of a run: every field is used, so no contender can leave work out.
struct Tally {
    std::uint64_t allowed = 0;
    std::uint64_t remaining = 0;
    std::uint64_t waits = 0;

    void add(const Answer& answer) noexcept {
        allowed += answer.allowed ? 1U : 0U;
        remaining += answer.remaining;
        waits += static_cast<std::uint64_t>(answer.retry_after) + static_cast<std::uint64_t>(answer.reset_after);
    }
};

struct Peer {
    std::string_view name;
    void* (*create)(const Setup&);
    void (*destroy)(void*);
    /// Checks each key once, in order, on the contender's own clock.
    Tally (*run)(void*, std::span<const Key>);
    /// Checks clients 0, 1, 2, ... once each and notes how many nanoseconds each check took.
    void (*fill)(void*, std::span<std::uint32_t> nanos);
    /// How many of the first `clients` it still knows to have used something.
    std::size_t (*live)(void*, std::size_t clients);
    /// The answers of a fresh instance to a recorded trace, at the trace's own times.
    std::vector<Answer> (*replay)(const Setup&, std::span<const Step>);
};

extern const Peer floor_peer;
extern const Peer penstock_peer;
extern const Peer unordered_map_peer;
extern const Peer tbb_peer;
extern const Peer absl_peer;

/// What a team would write today.
inline constexpr std::array all_peers{&unordered_map_peer, &tbb_peer, &absl_peer};

/// Owns one contender.
class Instance {
public:
    Instance(const Peer& peer, const Setup& setup) : peer_{&peer}, self_{peer.create(setup)} {}
    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;
    ~Instance() { peer_->destroy(self_); }

    [[nodiscard]] std::string_view name() const noexcept { return peer_->name; }
    Tally run(std::span<const Key> keys) { return peer_->run(self_, keys); }
    void fill(std::span<std::uint32_t> nanos) { peer_->fill(self_, nanos); }
    [[nodiscard]] std::size_t live(std::size_t clients) { return peer_->live(self_, clients); }

    /// Peers grow instead of forgetting.
    [[nodiscard]] std::uint64_t forgotten() const noexcept { return 0; }

private:
    const Peer* peer_;
    void* self_;
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_PEERS_PEER_HPP
