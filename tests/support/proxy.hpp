// SPDX-License-Identifier: MIT
// Proxy: stands between a client and a server, and cuts, merges, delays and holds up what passes.
#ifndef PENSTOCK_TESTS_SUPPORT_PROXY_HPP
#define PENSTOCK_TESTS_SUPPORT_PROXY_HPP

#include "tcp.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>

namespace support {

/// One thread pumps all connections. Nothing is lost, added or reordered.
class Proxy {
public:
    /// Given how many bytes wait to be passed on, how many go in the next segment: 0 to wait a moment for more.
    using Cut = std::function<std::size_t(std::size_t waiting)>;

    explicit Proxy(int server_port) : server_port_(server_port) {
        ::fcntl(listener_.fd(), F_SETFL, O_NONBLOCK);
        thread_ = std::thread([this] { pump(); });
    }

    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;

    ~Proxy() {
        stopping_ = true;
        thread_.join();
    }

    [[nodiscard]] int port() const { return listener_.port(); }

    /// How both directions are cut from now on. Called by the proxy's thread.
    void cut_by(Cut cut) {
        const bool was = frozen_.exchange(true);
        await_round();
        cut_ = std::move(cut);
        frozen_ = was;
    }

    /// Passes nothing on, and keeps the connections.
    void freeze() {
        frozen_ = true;
        await_round();
    }
    void thaw() { frozen_ = false; }

    /// Cuts all connections.
    void cut_connections() {
        cutting_ = true;
        while (cutting_) {
            std::this_thread::yield();
        }
    }

private:
    struct Direction {
        int from;
        int to;
        std::string waiting{};
    };

    void await_round() const {
        for (const std::size_t round = rounds_; rounds_ < round + 2;) {
            std::this_thread::yield();
        }
    }

    void pump() {
        while (!stopping_) {
            ++rounds_;
            if (cutting_) {
                close_all();
                cutting_ = false;
            }
            wait();
            if (const int client = listener_.accept(); client >= 0) {
                connect(client);
            }
            for (std::size_t i = 0; !frozen_ && i < directions_.size();) {
                if (pass_on(directions_[i])) {
                    ++i;
                } else {
                    close_pair(i & ~std::size_t{1});
                }
            }
        }
        close_all();
    }

    void wait() const {
        std::vector<pollfd> polled{{.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
        bool in_hand = false;
        for (const Direction& direction : directions_) {
            polled.push_back({.fd = frozen_ ? -1 : direction.from, .events = POLLIN, .revents = 0});
            in_hand = in_hand || !direction.waiting.empty();
        }
        const timespec moment{0, in_hand && !frozen_ ? 100'000 : 1'000'000};
        ::ppoll(polled.data(), polled.size(), &moment, nullptr);
    }

    void connect(int client) {
        const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in address = loopback(server_port_);
        if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            ::close(server);
            ::close(client);
            return;
        }
        const int on = 1;
        ::setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        directions_.push_back({client, server});
        directions_.push_back({server, client});
    }

    /// False if an end has hung up.
    bool pass_on(Direction& direction) const {
        std::array<char, 65536> buffer;
        const ssize_t count = ::recv(direction.from, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno != EAGAIN)) {
            return false;
        }
        direction.waiting.append(buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
        if (direction.waiting.empty()) {
            return true;
        }
        const std::size_t size =
            cut_ ? (std::min)(cut_(direction.waiting.size()), direction.waiting.size()) : direction.waiting.size();
        const bool sent = send_all(direction.to, std::string_view(direction.waiting).substr(0, size));
        direction.waiting.erase(0, size);
        return sent;
    }

    void close_pair(std::size_t first) {
        ::close(directions_[first].from);
        ::close(directions_[first].to);
        directions_.erase(directions_.begin() + static_cast<std::ptrdiff_t>(first),
                          directions_.begin() + static_cast<std::ptrdiff_t>(first) + 2);
    }

    void close_all() {
        while (!directions_.empty()) {
            close_pair(0);
        }
    }

    int server_port_;
    TcpListener listener_;
    Cut cut_;
    std::vector<Direction> directions_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> frozen_{false};
    std::atomic<bool> cutting_{false};
    std::atomic<std::size_t> rounds_{0};
    std::thread thread_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_PROXY_HPP
