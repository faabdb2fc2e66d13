// SPDX-License-Identifier: MIT
// Checks from an event loop: a thousand are in flight at once, and the loop never waits for any of them.
#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include "redis_server.hpp"
#include "support.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

/// The host's loop: other threads hand it what it is to do.
class EventLoop {
public:
    EventLoop() {
        epoll_event event{.events = EPOLLIN, .data = {}};
        epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event);
    }

    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    ~EventLoop() {
        close(wakeup_);
        close(epoll_);
    }

    /// Thread-safe.
    void post(std::function<void()> task) {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
        eventfd_write(wakeup_, 1);
    }

    /// Until `done`.
    void run(const std::function<bool()>& done) {
        while (!done()) {
            epoll_event event{};
            epoll_wait(epoll_, &event, 1, -1);  // here a server would also see to its clients' sockets
            eventfd_t woken = 0;
            eventfd_read(wakeup_, &woken);
            std::vector<std::function<void()>> tasks;
            {
                const std::lock_guard lock(mutex_);
                tasks.swap(tasks_);
            }
            for (const auto& task : tasks) {
                task();
            }
        }
    }

private:
    int epoll_ = epoll_create1(EPOLL_CLOEXEC);
    int wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::mutex mutex_;
    std::vector<std::function<void()>> tasks_;
};

struct Client {
    std::string name;
    std::uint64_t allowed = 0;
    std::uint64_t rejected = 0;
};

}  // namespace

int main() {
    const support::RedisServer server;
    EventLoop loop;
    std::array<Client, 4> clients{{{"user:1"}, {"user:2"}, {"user:3"}, {"user:4"}}};
    constexpr std::size_t requests = 1000;
    std::size_t answered = 0;

    penstock::Limiter limiter{penstock::TokenBucket{.capacity = 100, .refill = penstock::per_hour(1)},
                              penstock::RedisStorage{{.url = server.url(), .timeout = 5s}}};
    for (std::size_t i = 0; i < requests; ++i) {
        Client& client = clients[i % clients.size()];
        // The handler runs on the storage's thread and hands the answer to the loop, where everything else happens.
        limiter.async_check(client.name, 1, [&, i](penstock::Decision decision) {
            loop.post([&answered, &to = clients[i % clients.size()], decision] {
                (decision.allowed ? to.allowed : to.rejected) += 1;
                ++answered;
            });
        });
    }
    loop.run([&] { return answered == requests; });

    const support::Table table{"client", "allowed", "rejected"};
    for (const Client& client : clients) {
        table.row(client.name, client.allowed, client.rejected);
    }
}
