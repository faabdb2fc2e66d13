// SPDX-License-Identifier: MIT
// An engine without any server: it starts, answers that there is none, and ends.
#include <penstock/redis/engine.hpp>

#include "../../support/echo.hpp"
#include "../../support/redis_server.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>

namespace {

using namespace std::chrono_literals;
using penstock::StoreError;
using penstock::redis::Engine;
using penstock::redis::forks;
using support::Echo;
using support::engine_settings;

TEST_CASE("without a server every call fails, long before its timeout") {
    Engine engine(engine_settings(support::free_port()));
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) {
        Echo echo(i);
        support::ask(engine, echo);
        CHECK(echo.error() == StoreError::unavailable);
    }
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
    CHECK(engine.stats().ended[static_cast<std::size_t>(StoreError::unavailable)] == 1000);
}

TEST_CASE("an engine nobody asked anything is soon gone") {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) {
        const Engine engine(engine_settings(support::free_port()));
    }
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
}

TEST_CASE("a process that is no child of a fork has counted none") {
    CHECK(forks() == 0);
}

}  // namespace
