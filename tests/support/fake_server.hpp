// SPDX-License-Identifier: MIT
// FakeServer: what a server may do to its clients, and a real one would not do on demand.
#ifndef PENSTOCK_TESTS_SUPPORT_FAKE_SERVER_HPP
#define PENSTOCK_TESTS_SUPPORT_FAKE_SERVER_HPP

#include "tcp.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace support {

/// Listens on a free loopback port, and does with each connection, in a thread of its own, what the test says; then
/// the connection is closed. The destructor cuts all that is open.
class FakeServer {
public:
    /// One connection, as the server sees it. Everything ends when the client or the server goes: then `receive` gives
    /// nothing and `send` is false.
    class Connection {
    public:
        explicit Connection(int socket) : socket_(socket) {}

        /// The words of the next command; none if there is none to come.
        std::vector<std::string> receive() {
            std::vector<std::string> words;
            std::string text;
            for (std::size_t count = line(text) ? std::stoul(text.substr(1)) : 0; words.size() < count;) {
                if (!line(text) || !bytes(std::stoul(text.substr(1)), words.emplace_back())) {
                    return {};
                }
            }
            return words;
        }

        /// False if the client takes nothing any more.
        [[nodiscard]] bool send(std::string_view text) const { return send_all(socket_, text); }

        /// Does as a server does until the client may ask: a meta is the client's own.
        bool greet() {
            for (;;) {
                const std::vector<std::string> words = receive();
                if (words.empty()) {
                    return false;
                }
                if (words[0] == "EVAL") {
                    return send("$" + std::to_string(words[4].size()) + "\r\n" + words[4] + "\r\n");
                }
                if (!send(words[0] == "PING" ? "+PONG\r\n" : "+OK\r\n") || words[0] == "PING") {
                    return words[0] == "PING";
                }
            }
        }

        /// Answers what it never read, and resets the connection: the client's next send is to a broken pipe.
        void answer_and_reset(std::string_view text) const {
            char byte = 0;
            if (::recv(socket_, &byte, 1, MSG_PEEK) == 1 && send(text)) {
                ::shutdown(socket_, SHUT_WR);
            }
        }

        /// Reads on until the client goes, and says nothing.
        void be_silent() {
            while (!receive().empty()) {
            }
        }

    private:
        bool line(std::string& text) {
            std::size_t end = 0;
            while ((end = in_.find("\r\n")) == std::string::npos) {
                if (!read_more()) {
                    return false;
                }
            }
            text = in_.substr(0, end);
            in_.erase(0, end + 2);
            return true;
        }

        bool bytes(std::size_t size, std::string& text) {
            while (in_.size() < size + 2) {
                if (!read_more()) {
                    return false;
                }
            }
            text = in_.substr(0, size);
            in_.erase(0, size + 2);
            return true;
        }

        bool read_more() {
            char buffer[4096];
            const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
            in_.append(buffer, count > 0 ? static_cast<std::size_t>(count) : 0);
            return count > 0;
        }

        int socket_;
        std::string in_;
    };

    using Behaviour = std::function<void(Connection&)>;

    explicit FakeServer(Behaviour behaviour) : behaviour_(std::move(behaviour)), accepting_([this] { accept_all(); }) {}

    FakeServer(const FakeServer&) = delete;
    FakeServer& operator=(const FakeServer&) = delete;

    ~FakeServer() {
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
            for (const int socket : open_) {
                ::shutdown(socket, SHUT_RDWR);
            }
        }
        listener_.stop();
        accepting_.join();
        for (std::thread& each : serving_) {
            each.join();
        }
    }

    [[nodiscard]] int port() const { return listener_.port(); }

    /// How many connections there were so far.
    [[nodiscard]] std::size_t accepted() const { return accepted_; }

private:
    void accept_all() {
        for (int socket = 0; (socket = listener_.accept()) >= 0;) {
            const std::lock_guard lock(mutex_);
            if (stopped_) {
                ::close(socket);
                return;
            }
            open_.push_back(socket);
            ++accepted_;
            serving_.emplace_back([this, socket] {
                Connection connection(socket);
                behaviour_(connection);
                const std::lock_guard end(mutex_);
                std::erase(open_, socket);
                ::close(socket);
            });
        }
    }

    TcpListener listener_;
    Behaviour behaviour_;
    std::mutex mutex_;
    bool stopped_ = false;
    std::vector<int> open_;
    std::atomic<std::size_t> accepted_{0};
    std::vector<std::thread> serving_;
    std::thread accepting_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_FAKE_SERVER_HPP
