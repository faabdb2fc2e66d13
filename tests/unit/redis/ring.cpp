// SPDX-License-Identifier: MIT
#include <penstock/redis/ring.hpp>

#include <doctest/doctest.h>

#include "../../support/random.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::string_view_literals;
using penstock::redis::Ring;

constexpr std::size_t keys = 100'000;
constexpr double tolerance = 0.2;

std::string key_of(std::size_t number) {
    return "tenant:" + std::to_string(number);
}

std::string address(std::size_t number) {
    return "10.0.0." + std::to_string(number) + ":6379";
}

std::string port(std::size_t number) {
    return "redis.example.org:" + std::to_string(6379 + number);
}

std::string letter(std::size_t number) {
    return std::string(1, static_cast<char>('a' + number));
}

std::string random_name(std::size_t number) {
    return std::to_string(support::Random(number).bits());
}

using Name = std::string (*)(std::size_t);

std::vector<std::string> names(std::size_t count, Name name) {
    std::vector<std::string> result;
    for (std::size_t number = 0; number < count; ++number) {
        result.push_back(name(number));
    }
    return result;
}

template <class Check>
void for_nodes(Check check) {
    for (const Name name : {&address, &port, &letter, &random_name}) {
        for (std::size_t count = 1; count <= 16; ++count) {
            const std::vector<std::string> nodes = names(count, name);
            CAPTURE(nodes.front());
            CAPTURE(count);
            check(nodes, name);
        }
    }
}

TEST_CASE("keys are spread over nodes evenly") {
    for_nodes([](const std::vector<std::string>& nodes, Name) {
        const Ring ring(nodes);
        std::vector<std::size_t> load(nodes.size());
        for (std::size_t number = 0; number < keys; ++number) {
            ++load.at(ring.node_of(key_of(number)));
        }
        const double fair = static_cast<double>(keys) / static_cast<double>(nodes.size());
        const auto [least, most] = std::minmax_element(load.begin(), load.end());
        CHECK(static_cast<double>(*least) > fair * (1 - tolerance));
        CHECK(static_cast<double>(*most) < fair * (1 + tolerance));
    });
}

TEST_CASE("a node that is added to N takes 1/(N+1) of the keys, and no other key moves") {
    for_nodes([](std::vector<std::string> nodes, Name name) {
        const Ring before(nodes);
        const std::size_t added = nodes.size();
        nodes.push_back(name(added));
        const Ring after(nodes);
        std::size_t moved = 0;
        std::size_t moved_elsewhere = 0;
        for (std::size_t number = 0; number < keys; ++number) {
            const std::string key = key_of(number);
            const std::size_t node = after.node_of(key);
            moved += node == added ? 1 : 0;
            moved_elsewhere += node != added && node != before.node_of(key) ? 1 : 0;
        }
        const double fair = static_cast<double>(keys) / static_cast<double>(nodes.size());
        CHECK(static_cast<double>(moved) > fair * (1 - tolerance));
        CHECK(static_cast<double>(moved) < fair * (1 + tolerance));
        CHECK(moved_elsewhere == 0);
    });
}

TEST_CASE("each of the other nodes gives its share to a node that is added") {
    std::vector<std::string> nodes = names(8, address);
    const Ring before(nodes);
    nodes.push_back(address(8));
    const Ring after(nodes);
    std::vector<std::size_t> given(8);
    for (std::size_t number = 0; number < keys; ++number) {
        const std::string key = key_of(number);
        if (after.node_of(key) == 8) {
            ++given.at(before.node_of(key));
        }
    }
    for (const std::size_t share : given) {
        CHECK(static_cast<double>(share) > keys / 72.0 * (1 - tolerance));
        CHECK(static_cast<double>(share) < keys / 72.0 * (1 + tolerance));
    }
}

TEST_CASE("the order in which nodes are named does not matter") {
    support::Random random(1);
    const std::vector<std::string> nodes = names(7, address);
    const Ring ring(nodes);
    std::vector<std::string> others = nodes;
    for (int round = 0; round < 20; ++round) {
        for (std::size_t i = others.size() - 1; i > 0; --i) {
            std::swap(others[i], others[random.below(i + 1)]);
        }
        const Ring other(others);
        for (std::size_t number = 0; number < 1000; ++number) {
            const std::string key = key_of(number);
            CHECK(others[other.node_of(key)] == nodes[ring.node_of(key)]);
        }
    }
}

TEST_CASE("a single node has every key") {
    const std::vector<std::string> nodes{"only:6379"};
    const Ring ring(nodes);
    CHECK(ring.node_of("") == 0);
    CHECK(ring.node_of("\0\xff"sv) == 0);
    CHECK(ring.node_of(std::string(100'000, 'x')) == 0);
}

TEST_CASE("a ring outlives the names it was made of, and copies are alike") {
    std::vector<std::string> nodes = names(3, port);
    const Ring ring(nodes);
    Ring copy(names(1, letter));
    copy = ring;
    const std::size_t node = ring.node_of("tenant:42");
    nodes.clear();
    CHECK(ring.node_of("tenant:42") == node);
    CHECK(copy.node_of("tenant:42") == node);
    static_assert(noexcept(ring.node_of("")));
}

TEST_CASE("the mapping is the same on every machine and in every version") {
    const std::vector<std::string> nodes = names(5, address);
    const Ring ring(nodes);
    std::string mapping;
    for (std::size_t number = 0; number < 64; ++number) {
        mapping += std::to_string(ring.node_of(key_of(number)));
    }
    CHECK(mapping == "0243242421321120204042020113212232412303320033403422313223014140");
    CHECK(ring.node_of("") == 1);
    CHECK(ring.node_of("\0"sv) == 4);
    CHECK(ring.node_of("\xff\x80"sv) == 0);
    CHECK(ring.node_of(std::string(1000, 'x')) == 4);
}

}  // namespace
