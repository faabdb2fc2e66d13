// SPDX-License-Identifier: MIT
// Keys: what differs is another client.
#include "../support/expect.hpp"
#include "../support/storages.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <string_view>

namespace {

using namespace std::string_view_literals;
using expect::allowed;
using expect::rejected;
using penstock::Key;
using penstock::Limiter;
using penstock::ManualClock;
using penstock::per_hour;
using penstock::TokenBucket;

/// Each is allowed its one unit, and rejected when it comes again.
template <class Storage, class Keys>
void check_that_all_are_different_clients(const Keys& keys) {
    const ManualClock clock;
    Limiter limiter{TokenBucket{.capacity = 1, .refill = per_hour(1)}, Storage::fresh(), clock};
    for (const auto& key : keys) {
        CAPTURE(std::string_view(key).substr(0, 32));
        CHECK(limiter.check(key) == allowed(0));
    }
    for (const auto& key : keys) {
        CAPTURE(std::string_view(key).substr(0, 32));
        CHECK(limiter.check(key) == rejected());
    }
}

TEST_CASE_TEMPLATE("the parts of a key do not run together", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    check_that_all_are_different_clients<Storage>(std::array{Key("aa", "b"),
                                                             Key("a", "ab"),
                                                             Key("a:b", "c"),
                                                             Key("a", "b:c"),
                                                             Key("", "ab"),
                                                             Key("ab", ""),
                                                             Key("a\0b"sv),
                                                             Key("a", "b")});
}

TEST_CASE_TEMPLATE("a key is any bytes", Storage, PENSTOCK_STORAGES_UNDER_TEST) {
    check_that_all_are_different_clients<Storage>(std::array<std::string, 12>{"",
                                                                              std::string(1, '\0'),
                                                                              std::string(2, '\0'),
                                                                              "a",
                                                                              std::string("a\0", 2),
                                                                              std::string("a\0b", 3),
                                                                              "\xff",
                                                                              "\xc3\xa4",
                                                                              "{a}",
                                                                              "a{b}c",
                                                                              std::string(65'536, 'k'),
                                                                              std::string(65'535, 'k')});
}

}  // namespace
