// SPDX-License-Identifier: MIT
// 128-bit products, against the compiler's own integer where it has one.
#include <penstock/detail/wide.hpp>

#include "../../support/threads.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using namespace penstock::detail;

constexpr std::uint64_t most = ~std::uint64_t{0};

/// Random numbers of every length.
std::uint64_t number(threads::Random& random) {
    return random.bits() >> random.below(64);
}

TEST_CASE("a product keeps all of its bits") {
    CHECK(multiply(0, most).high == 0);
    CHECK(multiply(most, most).high == most - 1);
    CHECK(multiply(most, most).low == 1);
    CHECK(multiply(std::uint64_t{1} << 32, std::uint64_t{1} << 32).high == 1);
}

TEST_CASE("division undoes multiplication, with the rest that was added") {
    threads::Random random(1);
    for (int i = 0; i < 200'000; ++i) {
        const std::uint64_t divisor = number(random) | 1U;
        const std::uint64_t quotient = number(random);
        const std::uint64_t rest = random.bits() % divisor;
        const Division result = multiply_add_divide(quotient, divisor, rest, divisor);
        CHECK(result.quotient == quotient);
        CHECK(result.remainder == rest);
    }
}

TEST_CASE("division of 128 bits leaves a remainder below the divisor and loses nothing") {
    threads::Random random(2);
    for (int i = 0; i < 200'000; ++i) {
        const std::uint64_t divisor = number(random) | 1U;
        const Wide value{random.bits() % divisor, random.bits()};
        const auto [quotient, remainder] = divide(value, divisor);
        CHECK(remainder < divisor);
        const Wide product = multiply(quotient, divisor);
        CHECK(product.low + remainder == value.low);
        CHECK(product.high + (product.low + remainder < product.low ? 1 : 0) == value.high);
    }
}

TEST_CASE("both run at compile time") {
    static_assert(multiply(most, 2).high == 1);
    static_assert(multiply_add_divide(most - 1, most, most - 1, most).quotient == most - 1);
    static_assert(divide({1, 0}, 3).remainder == 1);
}

}  // namespace
