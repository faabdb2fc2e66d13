// SPDX-License-Identifier: MIT
// 128-bit products, with the compiler's own integer and by hand.
#include <penstock/detail/wide.hpp>

#include "../../support/random.hpp"

#include <doctest/doctest.h>

#include <cstdint>

// The same once more, as for a compiler that has no such integer.
#undef PENSTOCK_DETAIL_WIDE_HPP
#undef PENSTOCK_INT128
#define PENSTOCK_INT128 0
#undef PENSTOCK_BEGIN_NAMESPACE
#define PENSTOCK_BEGIN_NAMESPACE namespace by_hand {
#undef PENSTOCK_END_NAMESPACE
#define PENSTOCK_END_NAMESPACE }
#include <penstock/detail/wide.hpp>

namespace {

using namespace penstock::detail;

constexpr std::uint64_t most = ~std::uint64_t{0};

/// Random numbers of every length.
std::uint64_t number(support::Random& random) {
    return random.bits() >> random.below(64);
}

TEST_CASE("a product keeps all of its bits") {
    CHECK(multiply(0, most).high == 0);
    CHECK(multiply(most, most).high == most - 1);
    CHECK(multiply(most, most).low == 1);
    CHECK(multiply(std::uint64_t{1} << 32, std::uint64_t{1} << 32).high == 1);
}

TEST_CASE("division undoes multiplication, with the rest that was added") {
    support::Random random(1);
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
    support::Random random(2);
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

TEST_CASE("a product by hand has the same bits") {
    support::Random random(3);
    for (int i = 0; i < 200'000; ++i) {
        const std::uint64_t a = number(random);
        const std::uint64_t b = number(random);
        const Wide ours = multiply(a, b);
        const by_hand::detail::Wide other = by_hand::detail::multiply(a, b);
        CHECK(ours.high == other.high);
        CHECK(ours.low == other.low);
    }
    static_assert(by_hand::detail::multiply(most, most).high == most - 1);
    static_assert(by_hand::detail::multiply(most, most).low == 1);
}

TEST_CASE("division by hand has the same quotient and remainder") {
    support::Random random(4);
    for (int i = 0; i < 50'000; ++i) {
        const std::uint64_t divisor = number(random) | (i % 2 == 0 ? 1U : std::uint64_t{1} << 63);
        const Wide value{random.bits() % divisor, number(random)};
        const Division ours = divide(value, divisor);
        const by_hand::detail::Division other = by_hand::detail::divide({value.high, value.low}, divisor);
        CHECK(ours.quotient == other.quotient);
        CHECK(ours.remainder == other.remainder);
        const std::uint64_t a = number(random) % divisor;
        const Division sum = multiply_add_divide(a, value.low, divisor - 1, divisor);
        const by_hand::detail::Division other_sum =
            by_hand::detail::multiply_add_divide(a, value.low, divisor - 1, divisor);
        CHECK(sum.quotient == other_sum.quotient);
        CHECK(sum.remainder == other_sum.remainder);
    }
    static_assert(by_hand::detail::multiply_add_divide(most - 1, most, most - 1, most).quotient == most - 1);
}

TEST_CASE("both run at compile time") {
    static_assert(multiply(most, 2).high == 1);
    static_assert(multiply_add_divide(most - 1, most, most - 1, most).quotient == most - 1);
    static_assert(divide({1, 0}, 3).remainder == 1);
}

}  // namespace
