// SPDX-License-Identifier: MIT
#include <penstock/store.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string_view>

namespace {

using penstock::Op;
using penstock::store_errors;
using penstock::StoreError;
using penstock::to_string;

StoreError error_of(std::size_t number) {
    return static_cast<StoreError>(number);
}

TEST_CASE("no error is the error that means none") {
    CHECK(StoreError{} == StoreError::none);
    CHECK(StoreError::unavailable != StoreError::none);
}

TEST_CASE("what a storage is asked fits a byte, and is a check unless something else is said") {
    CHECK(Op{} == Op::check);
    CHECK(sizeof(Op) == 1);
    CHECK(sizeof(StoreError) == 1);
}

TEST_CASE("every error has a name of its own that suits a label") {
    std::set<std::string_view> names;
    for (std::size_t number = 0; number < store_errors; ++number) {
        const std::string_view name = to_string(error_of(number));
        CAPTURE(name);
        CHECK(name != "unknown");
        CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
        names.insert(name);
    }
    CHECK(names.size() == store_errors);
}

TEST_CASE("an error is called what it is called in the code") {
    CHECK(to_string(StoreError::none) == "none");
    CHECK(to_string(StoreError::unavailable) == "unavailable");
    CHECK(to_string(StoreError::out_of_memory) == "out_of_memory");
    CHECK(to_string(StoreError::tls_failed) == "tls_failed");
    CHECK(to_string(StoreError::refused) == "refused");
    static_assert(to_string(StoreError::timeout) == "timeout");
}

TEST_CASE("counters indexed by error have room for all and no more") {
    CHECK(store_errors == 28);
    CHECK(to_string(error_of(store_errors - 1)) != "unknown");
    CHECK(to_string(error_of(store_errors)) == "unknown");
    CHECK(to_string(error_of(255)) == "unknown");
}

TEST_CASE("the errors that stood first keep their numbers") {
    CHECK(static_cast<int>(StoreError::none) == 0);
    CHECK(static_cast<int>(StoreError::unavailable) == 1);
}

}  // namespace
