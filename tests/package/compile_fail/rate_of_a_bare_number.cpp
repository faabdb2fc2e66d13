// SPDX-License-Identifier: MIT
// A number in place of a rate: half a token in what time?
// says: narrow
#include <penstock/penstock.hpp>

auto bucket = penstock::TokenBucket{.capacity = 20, .refill = 0.5};
