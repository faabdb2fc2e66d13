// SPDX-License-Identifier: MIT
// main() of every doctest program, compiled once.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "no_leaks.hpp"

#include <cstdlib>

REGISTER_LISTENER("no_leaks", 1, support::NoLeaks);

int main(int argc, char** argv) {
    const int status = doctest::Context(argc, argv).run();
    return status == EXIT_SUCCESS && support::NoLeaks::found() ? EXIT_FAILURE : status;
}
