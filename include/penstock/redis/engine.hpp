// SPDX-License-Identifier: MIT
// Engine: performs what calls ask, over one connection to each server, and tells each its answer in bounded time.
#ifndef PENSTOCK_REDIS_ENGINE_HPP
#define PENSTOCK_REDIS_ENGINE_HPP

#include <penstock/config.hpp>
#include <penstock/detail/os.hpp>
#include <penstock/redis/call.hpp>
#include <penstock/redis/core.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include <pthread.h>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// How many times this process is the child of a fork, counted from the first engine on.
[[nodiscard]] inline std::atomic<unsigned>& forks() noexcept {
    static std::atomic<unsigned> count{0};
    static const int registered = pthread_atfork(nullptr, nullptr, [] { forks().fetch_add(1); });
    static_cast<void>(registered);
    return count;
}

/// Thread-safe. It never throws after construction, raises no signal and starts one thread, which runs the handlers of
/// calls. A fork's child gets connections and a thread of its own when it first uses the engine. Destroyed with calls
/// under way, it finishes them with StoreError::shut_down; it may be destroyed by a handler.
class Engine {
public:
    explicit Engine(const Settings& settings)
        : settings_(settings), generation_(forks().load()), core_(Core::start(settings)) {}

    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    ~Engine() {
        if (generation_ == forks()) {
            core_->stop();
        } else {
            abandon();
        }
    }

    /// Hands a call over; it is finished on the engine's thread, with an error if need be.
    void submit(Call& call) noexcept { core().submit(call); }

    /// When a call that is asked now is given up.
    [[nodiscard]] std::int64_t deadline() const noexcept { return detail::steady_now().count() + settings_.timeout; }

    /// Asks all of them and waits for the answers until the deadline. The calls are the caller's again afterwards.
    void run(std::span<Call* const> calls, std::int64_t deadline) noexcept { core().run(calls, deadline); }

    /// Takes back a call that was submitted and is not finished, and must not be told: it may be destroyed then. Not
    /// while it is being finished.
    void cancel(Call& call) noexcept {
        if (generation_.load(std::memory_order_acquire) == forks().load(std::memory_order_relaxed)) {
            core_->cancel(call);
        }
    }

    /// Which server a call would go to, as far as is known now.
    [[nodiscard]] std::size_t node_of(const Call& call) noexcept {
        return settings_.target.endpoints.size() == 1 && settings_.target.kind != Target::Kind::cluster
                   ? 0
                   : core().node_of(call);
    }

    [[nodiscard]] Stats stats() noexcept { return core().stats(); }

private:
    [[nodiscard]] Core& core() noexcept {
        if (generation_.load(std::memory_order_acquire) != forks().load(std::memory_order_relaxed)) [[unlikely]] {
            renew();
        }
        return *core_;
    }

    /// In a fork's child the threads of the old core are gone, and its lock may be held for ever.
    void renew() noexcept {
        while (renewing_.test_and_set(std::memory_order_acquire)) {
            detail::yield_thread();
        }
        if (const unsigned now = forks(); generation_ != now) {
            abandon();
            core_ = Core::start(settings_);
            generation_.store(now, std::memory_order_release);
        }
        renewing_.clear(std::memory_order_release);
    }

    /// What is the parent's is neither used nor destroyed: others of its threads may have been at it.
    void abandon() noexcept {
        core_->abandon();
        static_cast<void>(new std::shared_ptr<Core>(std::move(core_)));
    }

    Settings settings_;
    std::atomic<unsigned> generation_;
    std::atomic_flag renewing_;
    std::shared_ptr<Core> core_;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_ENGINE_HPP
