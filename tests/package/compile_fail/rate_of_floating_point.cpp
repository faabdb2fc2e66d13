// SPDX-License-Identifier: MIT
// A rate is a fraction of whole numbers: half a token per second is one in two seconds.
// says: no matching function for call to 'per_second
#include <penstock/penstock.hpp>

auto rate = penstock::per_second(0.5);
