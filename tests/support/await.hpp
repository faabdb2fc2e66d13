// SPDX-License-Identifier: MIT
// Waiting for what must come true.
#ifndef PENSTOCK_TESTS_SUPPORT_AWAIT_HPP
#define PENSTOCK_TESTS_SUPPORT_AWAIT_HPP

#include <chrono>
#include <thread>

namespace support {

/// Whether the condition comes true in time.
template <class Condition>
bool await(const Condition& condition, std::chrono::seconds longest = std::chrono::seconds{20}) {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
}

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_AWAIT_HPP
