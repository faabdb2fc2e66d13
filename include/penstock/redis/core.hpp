// SPDX-License-Identifier: MIT
// Core: an engine in one process: its lock, its thread, its servers, and who performs the I/O.
#ifndef PENSTOCK_REDIS_CORE_HPP
#define PENSTOCK_REDIS_CORE_HPP

#include <penstock/config.hpp>
#include <penstock/detail/os.hpp>
#include <penstock/redis/call.hpp>
#include <penstock/redis/connection_fsm.hpp>
#include <penstock/redis/node.hpp>
#include <penstock/redis/settings.hpp>
#include <penstock/redis/signals.hpp>
#include <penstock/redis/traffic.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Thread-safe. One thread at a time is in charge of the I/O: the core's own, or a caller who waits for an answer and
/// would otherwise only wait for that thread, if nobody else is.
class Core {
public:
    [[nodiscard]] static std::shared_ptr<Core> start(const Settings& settings) {
        auto core = std::make_shared<Core>(settings);
        const SignalsBlocked blocked;
        core->thread_ = std::thread([core] { core->work(); });
        return core;
    }

    explicit Core(const Settings& settings) : settings_(settings), traffic_(settings_, settings.tls) {}

    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    /// Finishes all calls, and the thread: when it returns, all are told. If a handler calls it, the thread ends after
    /// the handler.
    void stop() noexcept {
        std::unique_lock lock(mutex_);
        stopping_ = true;
        if (thread_.get_id() == std::this_thread::get_id()) {
            finish_all(lock);
            thread_.detach();
            return;
        }
        waker_->wake();
        charge_free_.notify_all();
        lock.unlock();
        thread_.join();
    }

    /// In a fork's child: gives up the parent's connections, without a word to the servers. The thread is the parent's
    /// too: its handle may by now be that of another thread of the child.
    void abandon() noexcept {
        for (const std::unique_ptr<Node>& node : traffic_.nodes()) {
            node->close_descriptor();
        }
        waker_->close();
    }

    /// Takes a call over, which is told of its end on the core's thread.
    void submit(Call& call) noexcept {
        const std::lock_guard lock(mutex_);
        call.core_ = this;
        const std::int64_t now = detail::steady_now().count();
        enter(call, now + settings_.timeout, now);
        Call* const asked = &call;
        dispatch({&asked, 1}, now);
        listens_ = true;
    }

    /// Asks all of the calls and returns when they are over, at the deadline (steady microseconds) at the latest.
    void run(std::span<Call* const> calls, std::int64_t deadline) noexcept {
        std::unique_lock lock(mutex_);
        const std::int64_t now = detail::steady_now().count();
        const bool alone = charge_ == Charge::nobody && traffic_.idle();
        bool all_sent = true;
        for (Call* call : calls) {
            call->waited_for_ = true;
            call->done_.wake_by(bells_.take());
            enter(*call, deadline, now);
            all_sent = all_sent && (call->sent_ || call->ended_);
        }
        if (id_ == std::this_thread::get_id()) {
            perform(lock, calls);  // a handler asks: nobody else would see to it
            lock.unlock();
        } else if (alone && all_sent) {
            lead(lock, calls);
        } else {
            dispatch(calls, now);
            lock.unlock();
        }
        for (Call* call : calls) {
            if (!call->done_.wait_until(deadline)) {
                give_up(*call);
            }
        }
    }

    /// Forgets a call that was submitted and is not over, without a word.
    void cancel(Call& call) noexcept {
        const std::lock_guard lock(mutex_);
        if (call.core_ == this) {
            call.core_ = nullptr;
            traffic_.cancel(call);
        }
    }

    /// Which server a call would go to, as far as is known now.
    [[nodiscard]] std::size_t node_of(const Call& call) noexcept {
        const std::lock_guard lock(mutex_);
        return traffic_.node_of(call);
    }

    [[nodiscard]] Stats stats() noexcept {
        const std::lock_guard lock(mutex_);
        return traffic_.stats;
    }

private:
    enum class Charge : std::uint8_t { nobody, caller, thread };

    static constexpr std::int64_t forever = Traffic::forever;
    static constexpr std::size_t rung_at_once = 2;  // bells, each of at most 16 callers: see `ring`
    static constexpr std::size_t few = 8;           // calls under way at a server: see `dispatch`

    void enter(Call& call, std::int64_t deadline, std::int64_t now) noexcept {
        if (stopping_) {
            traffic_.refuse(call, StoreError::shut_down);
        } else if (deadline <= now) {
            traffic_.refuse(call, StoreError::timeout);
        } else {
            traffic_.add(call, deadline);
        }
    }

    /// Sends the calls from here while few are under way, since it takes longer to wake whoever is in charge; of many,
    /// those that come together are sent together.
    void dispatch(std::span<Call* const> calls, std::int64_t now) noexcept {
        const bool asleep = asleep_.load(std::memory_order_acquire);
        bool all_sent = asleep || charge_ == Charge::nobody;
        for (const Call* call : calls) {
            all_sent = all_sent && !call->ended_ && call->sent_ && send_now(*call, calls, now);
        }
        if (!asleep || !all_sent) {
            nudge();
        }
    }

    [[nodiscard]] bool send_now(const Call& call, std::span<Call* const> calls, std::int64_t now) noexcept {
        Node& node = *traffic_.nodes()[call.node_];
        if (node.pipeline.size() > few + calls.size()) {
            return false;
        }
        node.fsm.sent(now);
        bells_.move_on();
        return node.send_now();
    }

    /// The caller has waited for long enough.
    void give_up(Call& call) noexcept {
        const std::lock_guard lock(mutex_);
        if (!call.done_.is_set()) {
            traffic_.give_up(call, StoreError::timeout);
        }
    }

    // The charge.

    /// There may be something to do for whoever is in charge. Once is enough until that thread has looked.
    void nudge() noexcept {
        if ((polling_ || watching_) && !nudged_) {
            nudged_ = true;
            waker_->wake();
        }
    }

    /// Performs the I/O until all the calls are done, or it is time to give up, or others are to be told of their
    /// calls, which is up to the thread.
    void lead(std::unique_lock<std::mutex>& lock, std::span<Call* const> calls) noexcept {
        charge_ = Charge::caller;
        ++leaders_;
        perform(lock, calls);
        ring(lock, traffic_.bells.size());
        charge_ = Charge::nobody;
        if (thread_waits_) {
            charge_free_.notify_one();
        } else if (stopping_ || traffic_.connections_changed || has_work()) {
            waker_->wake();
        }
        lock.unlock();
    }

    void perform(std::unique_lock<std::mutex>& lock, std::span<Call* const> calls) noexcept {
        const auto done = [](const Call* call) { return call->done_.is_set(); };
        while ((charge_ == Charge::thread || !traffic_.has_finished()) &&
               !std::all_of(calls.begin(), calls.end(), done) &&
               detail::steady_now().count() < calls.front()->deadline_) {
            turn(lock, calls.front()->deadline_);
        }
    }

    void work() noexcept {
        std::unique_lock lock(mutex_);
        id_ = std::this_thread::get_id();
        while (!stopping_) {
            if (charge_ == Charge::caller) {
                thread_waits_ = true;
                charge_free_.wait(lock);
                thread_waits_ = false;
            } else if (has_work() || std::exchange(listens_, false)) {
                charge_ = Charge::thread;
                turn(lock, forever);
                if (traffic_.has_finished()) {
                    ring(lock, traffic_.bells.size());  // handlers may take their time
                }
                tell_finished(lock, traffic_.finished_calls());
                charge_ = Charge::nobody;
            } else {
                watch(lock);
            }
        }
        while (charge_ == Charge::caller) {
            thread_waits_ = true;
            charge_free_.wait(lock);
            thread_waits_ = false;
        }
        finish_all(lock);
    }

    void finish_all(std::unique_lock<std::mutex>& lock) noexcept {
        while (Call* call = traffic_.first_under_way()) {
            traffic_.give_up(*call, StoreError::shut_down);
        }
        ring(lock, traffic_.bells.size());
        tell_finished(lock, (std::numeric_limits<std::size_t>::max)());
    }

    [[nodiscard]] bool has_work() const noexcept {
        if (!traffic_.idle() || !traffic_.bells.empty()) {
            return true;
        }
        const std::int64_t now = detail::steady_now().count();
        const auto& nodes = traffic_.nodes();
        return traffic_.due() <= now || std::any_of(nodes.begin(), nodes.end(), [now](const auto& node) {
                   const auto phase = node->fsm.phase();
                   return phase == ConnectionFsm::Phase::connecting || phase == ConnectionFsm::Phase::greeting ||
                          node->closed || !node->pipeline.empty() || Traffic::due(*node) <= now;
               });
    }

    /// Nobody is in charge: sleeps until there is something to do. A caller may take the charge meanwhile.
    void watch(std::unique_lock<std::mutex>& lock) noexcept {
        watched_.assign(1, {.fd = waker_->fd(), .events = POLLIN, .revents = 0});
        std::int64_t until = traffic_.due();
        for (const std::unique_ptr<Node>& node : traffic_.nodes()) {
            // Only whether the server hangs up: answers are for whoever is in charge by then.
            watched_.push_back({.fd = node->ready() ? node->socket().fd() : -1, .events = hang_up, .revents = 0});
            until = (std::min)(until, Traffic::due(*node));
        }
        const std::uint64_t leaders = leaders_;
        traffic_.connections_changed = false;
        watching_ = true;
        lock.unlock();
        poll_until(watched_, until);
        lock.lock();
        watching_ = false;
        if (leaders != leaders_) {
            return;  // it has looked at the same descriptors, and they may be those of other connections by now
        }
        look_at_waker(watched_[0]);
        for (std::size_t i = 0; i + 1 < watched_.size(); ++i) {
            traffic_.nodes()[i]->closed = watched_[i + 1].revents != 0;
        }
    }

    void look_at_waker(const pollfd& waker) noexcept {
        if (waker.revents != 0) {
            waker_->clear();
        }
        nudged_ = false;
    }

    // What is done by whoever is in charge.

    /// One turn: sends what is to be sent, waits for something to happen, until `end` at most, and sees to it.
    void turn(std::unique_lock<std::mutex>& lock, std::int64_t end) noexcept {
        const std::vector<std::unique_ptr<Node>>& nodes = traffic_.nodes();
        const std::int64_t now = detail::steady_now().count();
        traffic_.explore(now);
        polled_.assign(1, {.fd = waker_->fd(), .events = POLLIN, .revents = 0});
        std::int64_t until = (std::min)(end, traffic_.due());
        for (const std::unique_ptr<Node>& node : nodes) {
            step(*node, now);
            polled_.push_back({.fd = node->socket().fd(), .events = POLLIN, .revents = 0});
            until = (std::min)(until, Traffic::due(*node));
        }
        if (const Call* first = traffic_.first_under_way()) {
            until = (std::min)(until, first->deadline_);
        }
        until = (std::min)(until, now + patience_);
        if (!traffic_.bells.empty() || (traffic_.has_finished() && charge_ == Charge::thread)) {
            until = now;  // somebody is to be told
        }
        polling_ = true;
        lock.unlock();
        for (std::size_t i = 0; i + 1 < polled_.size(); ++i) {
            transmit(*nodes[i], polled_[i + 1]);
        }
        asleep_.store(true, std::memory_order_release);
        poll_until(polled_, until);
        for (std::size_t i = 0; i + 1 < polled_.size(); ++i) {
            nodes[i]->perform(polled_[i + 1].revents, buffer_);
        }
        lock.lock();
        asleep_.store(false, std::memory_order_relaxed);
        polling_ = false;
        look_at_waker(polled_[0]);
        for (std::size_t i = 0; i + 1 < polled_.size(); ++i) {
            attend(*nodes[i], polled_[i + 1].revents);
        }
        traffic_.expire(detail::steady_now().count());  // after what has come: who was stopped for a while is not late
        ring(lock, rung_at_once);
    }

    /// Wakes those whose calls are over, without the lock, since they will want it. Not too many at a time: what the
    /// first of them ask next is under way by the time the last are woken, so that server and callers work side by
    /// side.
    void ring(std::unique_lock<std::mutex>& lock, std::size_t most) noexcept {
        std::vector<detail::Bell*>& bells = traffic_.bells;
        if (bells.empty()) {
            return;
        }
        const auto end = bells.begin() + static_cast<std::ptrdiff_t>((std::min)(most, bells.size()));
        ringing_.assign(bells.begin(), end);
        bells.erase(bells.begin(), end);
        lock.unlock();
        for (detail::Bell* const bell : ringing_) {
            bell->ring();
        }
        lock.lock();
    }

    void step(Node& node, std::int64_t now) noexcept {
        if (node.fsm.phase() == ConnectionFsm::Phase::waiting && node.wanted &&
            node.fsm.tick(now) == ConnectionFsm::Action::connect) {
            ++traffic_.stats.connects;
            traffic_.connections_changed = true;
            node.look_up(waker_);
        }
        if (node.fsm.phase() == ConnectionFsm::Phase::connecting && !node.connect_further()) {
            traffic_.lose(node, node.failure(), now);
            return;
        }
        if (node.established) {
            node.take_inbox();
            bells_.move_on();
            if (node.has_output() && node.ready()) {
                node.fsm.sent(now);
            }
        }
    }

    static void transmit(Node& node, pollfd& polled) noexcept {
        if (node.established && node.has_output()) {
            node.closed = !node.send() || node.closed;
        }
        polled.events = node.events();
    }

    /// Something has happened to a node, or nothing.
    void attend(Node& node, short events) noexcept {
        const std::int64_t now = detail::steady_now().count();
        if (node.established) {
            traffic_.take_answers(node, (events & ~POLLOUT) != 0, now);
        } else if (node.fsm.phase() == ConnectionFsm::Phase::connecting && events != 0 && node.connected()) {
            traffic_.greet(node);  // if it is not, the next address is tried in the next turn
        }
        if (node.fsm.phase() != ConnectionFsm::Phase::waiting &&
            node.fsm.tick(now) == ConnectionFsm::Action::disconnect) {
            traffic_.lose(node, StoreError::timeout, now);
        }
    }

    /// Tells the callers who do not wait. They may call again, or destroy the engine.
    void tell_finished(std::unique_lock<std::mutex>& lock, std::size_t most) noexcept {
        for (; most > 0; --most) {
            Call* const call = traffic_.take_finished();
            if (call == nullptr) {
                return;
            }
            lock.unlock();
            call->finished();
            lock.lock();
        }
    }

#if defined(POLLRDHUP)
    static constexpr short hang_up = POLLRDHUP;
#else
    static constexpr short hang_up = 0;  // hang-ups on both ways are told unasked
#endif

    static void poll_until(std::vector<pollfd>& polled, std::int64_t until) noexcept {
        if (polled.front().fd < 0) {
            until = (std::min)(until, detail::steady_now().count() + 1000);  // there was no pipe to be had
        }
        const std::int64_t left =
            until == forever ? forever : (std::max)(until - detail::steady_now().count(), std::int64_t{0});
#if defined(__linux__)
        const std::timespec wait{static_cast<std::time_t>(left / 1'000'000),
                                 static_cast<long>(left % 1'000'000 * 1000)};
        const int count = ppoll(polled.data(), polled.size(), left == forever ? nullptr : &wait, nullptr);
#else
        const std::int64_t milliseconds =
            left == forever ? -1 : (std::min)((left + 999) / 1000, std::int64_t{1'000'000});
        const int count = poll(polled.data(), static_cast<nfds_t>(polled.size()), static_cast<int>(milliseconds));
#endif
        if (count <= 0) {
            for (pollfd& each : polled) {
                each.revents = 0;
            }
        }
    }

    const Settings settings_;
    // Nobody is woken for what others send meanwhile: this is how late its end is noticed if no answer comes, at most.
    const std::int64_t patience_ =
        (std::max)((std::min)(settings_.timeout, settings_.connection.stall_timeout), std::int64_t{1000});
    const std::shared_ptr<Waker> waker_ = std::make_shared<Waker>();

    std::mutex mutex_;
    std::condition_variable charge_free_;
    std::thread thread_;
    std::thread::id id_;  // of that thread, once it runs
    Charge charge_ = Charge::nobody;
    bool thread_waits_ = false;
    bool polling_ = false;             // who is in charge sleeps in poll() and would not see what comes
    bool watching_ = false;            // so does the thread, while nobody is in charge
    std::atomic<bool> asleep_{false};  // who is in charge has sent what there was: whoever has the lock may send more
    bool nudged_ = false;
    bool listens_ = false;  // for answers to those who do not wait, since more of them are to be expected
    bool stopping_ = false;
    std::uint64_t leaders_ = 0;  // callers who were in charge so far
    Traffic traffic_;
    detail::Bells bells_;  // those whose requests are sent together are answered together, and woken

    // Of whoever is in charge.
    std::vector<pollfd> polled_;
    std::vector<detail::Bell*> ringing_;
    std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 16);
    // Of the thread, while nobody is.
    std::vector<pollfd> watched_;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_CORE_HPP
