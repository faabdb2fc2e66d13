// SPDX-License-Identifier: MIT
// main() of every doctest program, compiled once.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
