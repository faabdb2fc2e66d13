// SPDX-License-Identifier: MIT
// ends: whether an action comes back, for what would otherwise stop the whole run.
#ifndef PENSTOCK_TESTS_SUPPORT_ENDS_HPP
#define PENSTOCK_TESTS_SUPPORT_ENDS_HPP

#include <chrono>
#include <future>
#include <thread>
#include <utility>

namespace support {

/// Whether an action ends within 20 seconds. One that does not is left behind with its thread: it must own what it
/// uses.
template <class Action>
bool ends(Action action) {
    std::promise<void> promise;
    std::future<void> done = promise.get_future();
    std::thread([action = std::move(action), promise = std::move(promise)]() mutable {
        action();
        promise.set_value();
    }).detach();
    return done.wait_for(std::chrono::seconds{20}) == std::future_status::ready;
}

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_ENDS_HPP
