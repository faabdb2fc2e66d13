// SPDX-License-Identifier: MIT
// Clients with names of 24 bytes, which of them ask, and what the answers to them must add up to.
#ifndef PENSTOCK_BENCH_REDIS_CLIENTS_HPP
#define PENSTOCK_BENCH_REDIS_CLIENTS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../keys.hpp"
#include "../peers/peer.hpp"
#include "../report.hpp"

namespace bench {

struct Name {
    std::array<char, 24> bytes;

    [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), bytes.size()}; }
};

[[nodiscard]] inline Name name_of(std::uint32_t client) noexcept {
    Name name{{'c', 'u', 's', 't', 'o', 'm', 'e', 'r'}};
    const Key digits = key_of(client);
    std::copy(digits.bytes.begin(), digits.bytes.end(), name.bytes.begin() + 8);
    return name;
}

/// In the order in which they ask, so that fetching a name hides no cache miss.
[[nodiscard]] inline std::vector<Name> names_of(std::span<const std::uint32_t> clients) {
    std::vector<Name> names;
    names.reserve(clients.size());
    for (const std::uint32_t client : clients) {
        names.push_back(name_of(client));
    }
    return names;
}

/// Draws who asks next, uniformly.
class Crowd {
public:
    Crowd(std::size_t clients, std::uint64_t seed) : clients_{clients}, random_{seed} {}

    [[nodiscard]] std::vector<std::uint32_t> draw(std::size_t checks) {
        std::vector<std::uint32_t> drawn(checks);
        for (std::uint32_t& client : drawn) {
            client = static_cast<std::uint32_t>(random_.below(clients_));
        }
        return drawn;
    }

    [[nodiscard]] std::vector<std::uint32_t> everybody() const {
        std::vector<std::uint32_t> all(clients_);
        std::iota(all.begin(), all.end(), 0U);
        return all;
    }

private:
    std::size_t clients_;
    Random random_;
};

/// Of every client. Nothing comes back within a run, so that the answers can be foretold; and no client comes near the
/// end of it, so that none is rejected.
inline constexpr Limit ample_limit{.capacity = 1000, .micros_per_unit = 3'600'000'000};

/// Counts what each client has used, of each of its rules.
class Ledger {
public:
    explicit Ledger(std::size_t clients, std::vector<std::uint64_t> capacities = {ample_limit.capacity})
        : used_(clients), capacities_{std::move(capacities)} {}

    /// One check of each rule for each of the clients, in any order.
    void demand(std::string_view who, std::span<const std::uint32_t> clients, const Tally& tally) {
        std::uint64_t remaining = 0;
        for (const std::uint32_t client : clients) {
            ++used_[client];
            for (const std::uint64_t capacity : capacities_) {
                remaining += capacity - used_[client];
            }
        }
        if (tally.allowed == clients.size() * capacities_.size() && tally.remaining == remaining) return;
        throw WrongAnswer{std::string{who} + ": the answers do not add up: " + std::to_string(tally.allowed) +
                          " allowed of " + std::to_string(clients.size() * capacities_.size()) + ", remaining " +
                          std::to_string(tally.remaining) + " instead of " + std::to_string(remaining)};
    }

private:
    std::vector<std::uint64_t> used_;
    std::vector<std::uint64_t> capacities_;
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_CLIENTS_HPP
