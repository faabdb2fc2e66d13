// SPDX-License-Identifier: MIT
// Two switches as a user would set them, before the first header.
#define PENSTOCK_INT128 0
#define PENSTOCK_HUGE_PAGES 0

#include <penstock/config.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

namespace {

#define PENSTOCK_TEST_TEXT_OF(text) #text
#define PENSTOCK_TEST_TEXT(macro) PENSTOCK_TEST_TEXT_OF(macro)

TEST_CASE("a switch that the user has set keeps its value") {
    CHECK(PENSTOCK_INT128 == 0);
    CHECK(PENSTOCK_HUGE_PAGES == 0);
}

TEST_CASE("a switch that the user has not set is what the compiler can") {
    CHECK(PENSTOCK_EXCEPTIONS == 1);
}

TEST_CASE("the whole version stands in the inline namespace") {
    const std::string expected = "v" + std::to_string(PENSTOCK_VERSION_MAJOR) + "_" +
                                 std::to_string(PENSTOCK_VERSION_MINOR) + "_" + std::to_string(PENSTOCK_VERSION_PATCH);
    CHECK(std::string(PENSTOCK_TEST_TEXT(PENSTOCK_ABI)) == expected);
}

}  // namespace

PENSTOCK_BEGIN_NAMESPACE
struct InTheNamespaceOfTheLibrary;
PENSTOCK_END_NAMESPACE

namespace {

TEST_CASE("a name of the library is the same with and without its version") {
    CHECK(std::is_same_v<penstock::PENSTOCK_ABI::InTheNamespaceOfTheLibrary, penstock::InTheNamespaceOfTheLibrary>);
}

}  // namespace
