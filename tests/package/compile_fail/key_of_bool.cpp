// SPDX-License-Identifier: MIT
// A truth value has no one spelling.
// says: penstock: a part of a Key is text, a char or an integer
#include <penstock/penstock.hpp>

auto key = penstock::Key("tenant", true);
