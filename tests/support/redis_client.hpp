// SPDX-License-Identifier: MIT
// RedisClient: talks to a server over a plain socket, one caller at a time, and waits for the answers.
#ifndef PENSTOCK_TESTS_SUPPORT_REDIS_CLIENT_HPP
#define PENSTOCK_TESTS_SUPPORT_REDIS_CLIENT_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace support {

struct Reply {
    enum class Kind { nil, integer, string, status, error, array };

    Kind kind = Kind::nil;
    std::int64_t integer = 0;
    std::string text{};          // of a string, status or error
    std::vector<Reply> items{};  // of an array

    [[nodiscard]] bool is(Kind other) const { return kind == other; }

    /// The numbers of an array of integers, or an integer alone.
    [[nodiscard]] std::vector<std::int64_t> integers() const {
        if (is(Kind::integer)) {
            return {integer};
        }
        std::vector<std::int64_t> numbers;
        for (const Reply& item : items) {
            numbers.push_back(item.integer);
        }
        return numbers;
    }
};

/// Not thread-safe. Throws std::runtime_error if the connection breaks or nothing comes for 20 seconds.
class RedisClient {
public:
    explicit RedisClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval patience{20, 0};
        const int on = 1;
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            ::close(socket_);
            throw std::runtime_error("no connection to port " + std::to_string(port));
        }
    }

    RedisClient(const RedisClient&) = delete;
    RedisClient& operator=(const RedisClient&) = delete;
    ~RedisClient() { ::close(socket_); }

    /// Sends a command and waits for its reply.
    template <class... Words>
    Reply operator()(const Words&... words) {
        add({std::string(words)...});
        flush();
        return receive();
    }

    /// Queues a command; its reply is due after those of the commands before it.
    void add(const std::vector<std::string>& words) {
        out_ += '*' + std::to_string(words.size()) + "\r\n";
        for (const std::string& word : words) {
            out_.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
        }
    }

    /// Sends what is queued.
    void flush() {
        for (std::string_view rest = out_; !rest.empty();) {
            const ssize_t sent = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                throw std::runtime_error("the server takes nothing");
            }
            rest.remove_prefix(static_cast<std::size_t>(sent));
        }
        out_.clear();
    }

    Reply receive() {
        const std::string head = line();
        const std::string rest = head.substr(1);
        switch (head[0]) {
        case '+':
            return {Reply::Kind::status, 0, rest};
        case '-':
            return {Reply::Kind::error, 0, rest};
        case ':':
            return {Reply::Kind::integer, std::stoll(rest)};
        case '$':
            return rest == "-1" ? Reply{} : Reply{Reply::Kind::string, 0, bulk(std::stoul(rest))};
        case '*':
            return rest == "-1" ? Reply{} : array(std::stoul(rest));
        default:
            throw std::runtime_error("not a reply: " + head);
        }
    }

private:
    Reply array(std::size_t size) {
        Reply reply{Reply::Kind::array};
        while (reply.items.size() < size) {
            reply.items.push_back(receive());
        }
        return reply;
    }

    std::string bulk(std::size_t size) {
        while (in_.size() - at_ < size + 2) {
            read_more();
        }
        std::string text = in_.substr(at_, size);
        at_ += size + 2;
        return text;
    }

    std::string line() {
        std::size_t end = 0;
        while ((end = in_.find("\r\n", at_)) == std::string::npos) {
            read_more();
        }
        std::string text = in_.substr(at_, end - at_);
        at_ = end + 2;
        return text;
    }

    void read_more() {
        in_.erase(0, at_);
        at_ = 0;
        char bytes[65536];
        const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
        if (count <= 0) {
            throw std::runtime_error("the server does not answer");
        }
        in_.append(bytes, static_cast<std::size_t>(count));
    }

    int socket_;
    std::string out_;
    std::string in_;
    std::size_t at_ = 0;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_REDIS_CLIENT_HPP
