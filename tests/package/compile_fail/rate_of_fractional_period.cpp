// SPDX-License-Identifier: MIT
// A period finer than the microseconds in which time is counted.
// says: no matching function for call to 'per
#include <penstock/penstock.hpp>

auto rate = penstock::per(1, std::chrono::nanoseconds{1500});
