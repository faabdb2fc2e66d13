// SPDX-License-Identifier: MIT
// What a fuzz target does with an input that breaks a promise: it ends the program, which keeps the input.
#ifndef PENSTOCK_TESTS_FUZZ_ORACLE_HPP
#define PENSTOCK_TESTS_FUZZ_ORACLE_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// `complaint` says what is the matter if it is not so.
inline void expect(bool so, const char* complaint) {
    if (!so) {
        std::fprintf(stderr, "found: %s\n", complaint);
        std::abort();
    }
}

#endif  // PENSTOCK_TESTS_FUZZ_ORACLE_HPP
