// SPDX-License-Identifier: MIT
// What the snippets of README.md take for granted.
#ifndef PENSTOCK_TESTS_PACKAGE_README_PRELUDE_HPP
#define PENSTOCK_TESTS_PACKAGE_README_PRELUDE_HPP

#include <penstock/penstock_redis.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

using namespace std::chrono_literals;

extern penstock::Limiter<penstock::TokenBucket> limiter;
extern penstock::Limiter<penstock::TokenBucket, penstock::RedisStorage> fleet;
extern std::string_view client;
extern bool paying;

void serve();
void reply_429(std::chrono::microseconds retry_after);
void post_to_my_loop(penstock::Decision decision);
void run_after(std::chrono::microseconds wait);

#endif  // PENSTOCK_TESTS_PACKAGE_README_PRELUDE_HPP
