// SPDX-License-Identifier: MIT
#include <penstock/store.hpp>

#include <doctest/doctest.h>

namespace {

using penstock::Op;
using penstock::StoreError;

TEST_CASE("no error is the error that means none") {
    CHECK(StoreError{} == StoreError::none);
    CHECK(StoreError::unavailable != StoreError::none);
}

TEST_CASE("what a storage is asked fits a byte, and is a check unless something else is said") {
    CHECK(Op{} == Op::check);
    CHECK(sizeof(Op) == 1);
    CHECK(sizeof(StoreError) == 1);
}

}  // namespace
