// SPDX-License-Identifier: MIT
// Clients and the orders in which they come: the keys lie in the order of access, so fetching them hides no cache miss.
#ifndef PENSTOCK_BENCH_KEYS_HPP
#define PENSTOCK_BENCH_KEYS_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "peers/peer.hpp"

namespace bench {

/// A bijection of 64-bit numbers (the finaliser of splitmix64).
[[nodiscard]] constexpr std::uint64_t scramble(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

/// Sixteen hexadecimal digits, different for every client.
[[nodiscard]] constexpr Key key_of(std::uint64_t client) noexcept {
    Key key{};
    std::uint64_t rest = scramble(client);
    for (char& digit : key.bytes) {
        digit = "0123456789abcdef"[rest & 15U];
        rest >>= 4U;
    }
    return key;
}

/// Small, fast, and the same everywhere, unlike the distributions of <random>.
class Random {
public:
    explicit constexpr Random(std::uint64_t seed) noexcept : state_{seed} {}

    [[nodiscard]] constexpr std::uint64_t next() noexcept { return scramble(state_++); }
    [[nodiscard]] constexpr std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }
    [[nodiscard]] constexpr double unit() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }

private:
    std::uint64_t state_;
};

/// Checks in the order in which they are made.
struct Stream {
    std::vector<std::uint32_t> clients;
    std::vector<Key> keys;

    explicit Stream(std::vector<std::uint32_t> order) : clients{std::move(order)} {
        keys.reserve(clients.size());
        for (const std::uint32_t client : clients) {
            keys.push_back(key_of(client));
        }
    }
};

[[nodiscard]] inline std::vector<std::uint32_t> shuffled(std::size_t clients, std::uint64_t seed) {
    std::vector<std::uint32_t> order(clients);
    for (std::size_t i = 0; i < clients; ++i) {
        order[i] = static_cast<std::uint32_t>(i);
    }
    Random random{seed};
    for (std::size_t i = clients; i > 1; --i) {
        std::swap(order[i - 1], order[random.below(i)]);
    }
    return order;
}

/// Ranks 1 to n with probability in proportion to 1/rank, by rejection-inversion (Hoermann and Derflinger, 1996).
class Zipf {
public:
    explicit Zipf(std::size_t n) noexcept : n_{static_cast<double>(n)} {}

    [[nodiscard]] std::size_t draw(Random& random) const {
        for (;;) {
            const double u = top_ + random.unit() * (bottom_ - top_);
            const double x = std::exp(u);
            double rank = std::floor(x + 0.5);
            rank = rank < 1.0 ? 1.0 : (rank > n_ ? n_ : rank);
            if (rank - x <= near_ || u >= std::log(rank + 0.5) - 1.0 / rank) return static_cast<std::size_t>(rank);
        }
    }

private:
    double n_;
    double top_ = std::log(n_ + 0.5);
    double bottom_ = std::log(1.5) - 1.0;
    double near_ = 2.0 - std::exp(std::log(2.5) - 0.5);
};

/// Which clients are the busy ones is random too: they must not be neighbours in order of arrival.
[[nodiscard]] inline std::vector<std::uint32_t> zipfian(std::size_t clients, std::size_t draws, std::uint64_t seed) {
    const std::vector<std::uint32_t> by_rank = shuffled(clients, seed);
    const Zipf zipf{clients};
    Random random{seed + 1};
    std::vector<std::uint32_t> order(draws);
    for (std::uint32_t& client : order) {
        client = by_rank[zipf.draw(random) - 1];
    }
    return order;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_KEYS_HPP
