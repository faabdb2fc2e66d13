// SPDX-License-Identifier: MIT
// One limit in several regions without a store between them, in three ways: a static share for each region, a home
// region for each client, and a load balancer that sends each client to the same gateway.
#include <penstock/guard/share.hpp>
#include <penstock/hash.hpp>
#include <penstock/penstock.hpp>

#include "support.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t limit = 1000;  // requests of one client in an hour, all over the world

/// What a region keeps for itself: here a gateway's memory, elsewhere the region's own Redis.
using Region = penstock::Limiter<penstock::FixedWindow, penstock::LocalStorage, penstock::ManualClock>;

constexpr std::array<std::string_view, 3> names{"america", "asia", "europe"};

std::deque<Region> regions_with(std::uint64_t limit_each) {
    std::deque<Region> regions;
    for (std::size_t i = 0; i < names.size(); ++i) {
        regions.emplace_back(penstock::FixedWindow{.limit = limit_each, .window = 1h});
    }
    return regions;
}

/// How many of so many requests pass.
std::uint64_t passed(Region& region, std::string_view client, int requests) {
    std::uint64_t passed = 0;
    for (int i = 0; i < requests; ++i) {
        passed += region.check(client).allowed ? 1 : 0;
    }
    return passed;
}

/// Each region may use up its share of every limit, by its part of the traffic. The shares add up to the limit exactly,
/// so it holds whatever happens; but a client that stays in one region gets no more than the share.
void static_shares() {
    const std::array<std::uint64_t, 3> traffic{5, 2, 2};
    const support::Table table{"static shares", "share", "passed"};
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::uint64_t share = penstock::share_of(limit, traffic, i);
        Region region{{.limit = share, .window = 1h}};
        const std::uint64_t here = passed(region, "user:42", 2000);
        table.row(names[i], share, here);
        all += here;
    }
    table.row("together", limit, all);
}

/// A hash that is the same everywhere: on every machine, and in every version.
std::size_t place_of(std::string_view client, std::size_t places) {
    return penstock::hash_bytes(client, 0) % places;
}

/// Each client is counted in its home region, with the whole limit, wherever its requests arrive: exact, at the price
/// of a round trip between regions for those who travel.
void home_region() {
    std::deque<Region> regions = regions_with(limit);
    const support::Table table{"home region", "home    ", "from america", "from asia", "from europe"};
    for (const std::string_view client : {"user:1", "user:2", "user:3", "user:4"}) {
        const std::size_t home = place_of(client, regions.size());
        const std::uint64_t from_america = passed(regions[home], client, 500);
        const std::uint64_t from_asia = passed(regions[home], client, 400);
        const std::uint64_t from_europe = passed(regions[home], client, 300);
        table.row(client, names[home], from_america, from_asia, from_europe);
    }
}

/// The load balancer sends each client to one gateway (by a hash of its key, or by a cookie), so that the gateway's own
/// memory is all the store there is to be. When a gateway goes, its clients start anew on others.
void sticky_routing() {
    std::deque<Region> gateways = regions_with(limit);
    std::array<std::uint64_t, 3> clients{};
    std::array<std::uint64_t, 3> requests{};
    for (int i = 0; i < 300; ++i) {
        const std::string client = "user:" + std::to_string(i);
        const std::size_t place = place_of(client, gateways.size());
        clients[place] += 1;
        requests[place] += passed(gateways[place], client, 1200);
    }
    const support::Table table{"sticky routing", "clients", "passed"};
    for (std::size_t i = 0; i < clients.size(); ++i) {
        table.row("gateway " + std::to_string(i), clients[i], requests[i]);
    }
}

}  // namespace

int main() {
    static_shares();
    home_region();
    sticky_routing();
}
