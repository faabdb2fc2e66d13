// SPDX-License-Identifier: MIT
// The text of configuration errors.
#include <penstock/detail/throw.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

namespace {

void ignore(const char*) {}

TEST_CASE("an error names the field, the value and what is allowed") {
    CHECK_THROWS_WITH_AS(penstock::detail::throw_invalid("Bucket.size", "0", "1 to 9"),
                         "Bucket.size is 0: allowed is 1 to 9",
                         std::invalid_argument);
}

TEST_CASE("the handler for builds without exceptions is replaced and given back") {
    const bool none = penstock::on_configuration_error(ignore) == nullptr;
    CHECK(none);
    const bool given_back = penstock::on_configuration_error(nullptr) == ignore;
    CHECK(given_back);
}

}  // namespace
