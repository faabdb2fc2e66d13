// SPDX-License-Identifier: MIT
// The storages that every case is run over: TEST_CASE_TEMPLATE("...", Storage, PENSTOCK_STORAGES_UNDER_TEST).
#ifndef PENSTOCK_TESTS_SUPPORT_STORAGES_HPP
#define PENSTOCK_TESTS_SUPPORT_STORAGES_HPP

#include <penstock/storage/local.hpp>

#include <doctest/doctest.h>

namespace under_test {

/// One storage: `fresh()` gives one that no other limiter of the run uses.
struct Local {
    static penstock::LocalStorage fresh() { return penstock::LocalStorage{{.max_keys = 10'000, .seed = 1}}; }
};

}  // namespace under_test

TYPE_TO_STRING_AS("LocalStorage", under_test::Local);

#define PENSTOCK_STORAGES_UNDER_TEST under_test::Local

#endif  // PENSTOCK_TESTS_SUPPORT_STORAGES_HPP
