// SPDX-License-Identifier: MIT
// What gateways agree on.
#include <penstock/redis/meta.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using penstock::redis::Meta;
using penstock::redis::parse_meta;

TEST_CASE("a meta is read as it was written") {
    for (const Meta& meta : {Meta{1, 0}, Meta{16384, 42}, Meta{std::uint64_t{1} << 32, ~std::uint64_t{0}}}) {
        CHECK(parse_meta(to_text(meta)) == meta);
    }
    CHECK(to_text(Meta{16384, 1311768467294899695}) == "1 16384 1311768467294899695");
}

TEST_CASE("what is none, or of a later version, is not taken for one") {
    for (const char* text : {"",
                             "1",
                             "1 ",
                             "1 16384",
                             "1 16384 ",
                             "1 16384 42 ",
                             "1 16384 42 1",
                             "2 16384 42",
                             "1 16383 42",
                             "1 0 42",
                             "1 -1 42",
                             "1 16384 99999999999999999999",
                             "1  16384 42",
                             "x"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_meta(text).has_value());
    }
}

}  // namespace
