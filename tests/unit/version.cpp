// SPDX-License-Identifier: MIT
#include <penstock/version.hpp>

#include <doctest/doctest.h>

namespace {

TEST_CASE("the version is one number that grows with every release") {
    CHECK(PENSTOCK_VERSION == PENSTOCK_VERSION_MAJOR * 10'000 + PENSTOCK_VERSION_MINOR * 100 + PENSTOCK_VERSION_PATCH);
    CHECK(PENSTOCK_VERSION_MINOR < 100);
    CHECK(PENSTOCK_VERSION_PATCH < 100);
}

TEST_CASE("the preprocessor can compare the version") {
#if PENSTOCK_VERSION >= 10'000 && PENSTOCK_VERSION_MAJOR >= 1
    const bool compared = true;
#else
    const bool compared = false;
#endif
    CHECK(compared);
}

}  // namespace
