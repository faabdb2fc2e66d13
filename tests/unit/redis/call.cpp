// SPDX-License-Identifier: MIT
// Calls, and lists of them that allocate nothing.
#include <penstock/redis/call.hpp>

#include "../../support/echo.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

namespace {

using penstock::StoreError;
using penstock::redis::Call;
using penstock::redis::Calls;
using support::Echo;

/// Whether the list has these, in this order.
bool holds(const Calls& calls, std::initializer_list<const Call*> expected) {
    const Call* each = calls.first();
    for (const Call* call : expected) {
        if (each != call) {
            return false;
        }
        each = Calls::next(*each);
    }
    return each == nullptr && calls.size() == expected.size() && calls.empty() == (expected.size() == 0);
}

TEST_CASE("calls stand in the order in which they were added, and leave from anywhere") {
    Echo a(1);
    Echo b(2);
    Echo c(3);
    Calls calls;
    CHECK(holds(calls, {}));
    for (Echo* each : {&a, &b, &c}) {
        calls.add(*each);
    }
    CHECK(holds(calls, {&a, &b, &c}));
    calls.remove(b);
    CHECK(holds(calls, {&a, &c}));
    calls.add(b);
    CHECK(holds(calls, {&a, &c, &b}));
    calls.remove(a);
    calls.remove(b);
    CHECK(holds(calls, {&c}));
    calls.remove(c);
    CHECK(holds(calls, {}));
    calls.add(a);
    CHECK(holds(calls, {&a}));
}

TEST_CASE("a call that was not asked yet has neither an error nor an answer") {
    const Echo echo(1);
    CHECK(echo.error() == StoreError::none);
    CHECK(echo.numbers().empty());
}

}  // namespace
