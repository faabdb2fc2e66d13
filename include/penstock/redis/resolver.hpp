// SPDX-License-Identifier: MIT
// Resolution: the addresses of a name, looked up where it may take as long as it likes.
#ifndef PENSTOCK_REDIS_RESOLVER_HPP
#define PENSTOCK_REDIS_RESOLVER_HPP

#include <penstock/config.hpp>
#include <penstock/redis/signals.hpp>
#include <penstock/redis/socket.hpp>
#include <penstock/redis/url.hpp>
#include <penstock/redis/waker.hpp>

#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Looks up an endpoint: numbers at once, names on a thread of their own, since the system's resolver cannot be told to
/// hurry. Whoever does not want to wait any longer forgets the resolution; its thread ends on its own.
class Resolution {
public:
    Resolution(const Endpoint& endpoint, std::shared_ptr<const Waker> waker) : found_(std::make_shared<Found>()) {
        found_->addresses = addresses_of(endpoint, true);
        if (!found_->addresses.empty() || !endpoint.path.empty()) {
            found_->done = true;
            return;
        }
        const SignalsBlocked blocked;
#if PENSTOCK_EXCEPTIONS
        try {
            start(endpoint, std::move(waker));
        } catch (const std::system_error&) {
            found_->done = true;  // no thread to be had: as if the name had no address
        }
#else
        start(endpoint, std::move(waker));
#endif
    }

    [[nodiscard]] bool done() const noexcept {
        return found_->done.load(std::memory_order_acquire);
    }

    /// Once done; none if there are none.
    [[nodiscard]] const std::vector<Address>& addresses() const noexcept {
        return found_->addresses;
    }

private:
    struct Found {
        std::atomic<bool> done{false};
        std::vector<Address> addresses;
    };

    void start(const Endpoint& endpoint, std::shared_ptr<const Waker> waker) {
        std::thread([found = found_, endpoint, waker = std::move(waker)] {
            found->addresses = addresses_of(endpoint, false);
            found->done.store(true, std::memory_order_release);
            waker->wake();
        }).detach();
    }

    std::shared_ptr<Found> found_;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_RESOLVER_HPP
