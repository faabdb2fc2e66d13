// SPDX-License-Identifier: MIT
// A limit that limits nothing.
// says: penstock: AllOf needs at least one part
#include <penstock/penstock.hpp>

penstock::AllOf<> all;
