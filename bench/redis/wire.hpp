// SPDX-License-Identifier: MIT
// Wire: a bare connection that pipelines commands which were written beforehand: a client that does the least possible.
#ifndef PENSTOCK_BENCH_REDIS_WIRE_HPP
#define PENSTOCK_BENCH_REDIS_WIRE_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../report.hpp"
#include "clients.hpp"
#include "script.hpp"

namespace bench {

/// Commands, one behind the other, so that several go out with one call and without a copy.
class Batch {
public:
    /// For each client one command of each script.
    Batch(std::span<const Script* const> scripts, std::span<const std::uint32_t> clients, std::uint64_t cost = 1) {
        begins_.reserve(clients.size() * scripts.size() + 1);
        for (const std::uint32_t client : clients) {
            for (const Script* script : scripts) {
                begins_.push_back(bytes_.size());
                script->append(bytes_, name_of(client).view(), cost);
            }
        }
        begins_.push_back(bytes_.size());
    }

    Batch(const Script& script, std::span<const std::uint32_t> clients, std::uint64_t cost = 1)
        : Batch{std::array{&script}, clients, cost} {}

    [[nodiscard]] std::size_t size() const noexcept { return begins_.size() - 1; }

    [[nodiscard]] std::string_view slice(std::size_t begin, std::size_t end) const noexcept {
        return std::string_view{bytes_}.substr(begins_[begin], begins_[end] - begins_[begin]);
    }

private:
    std::string bytes_;
    std::vector<std::size_t> begins_;
};

/// The numbers of a reply.
class Numbers {
public:
    void clear() noexcept { size_ = 0; }
    void add(std::int64_t number) {
        if (size_ == all_.size()) throw WrongAnswer{"a reply of too many numbers"};
        all_[size_++] = number;
    }
    [[nodiscard]] std::span<const std::int64_t> all() const noexcept { return std::span{all_}.first(size_); }

private:
    std::array<std::int64_t, 16> all_{};
    std::size_t size_ = 0;
};

/// Reads the reply that `bytes` begin with. Returns how long it is, or 0 if some of it is yet to come.
[[nodiscard]] inline std::size_t parse_reply(std::string_view bytes, Numbers& numbers) {
    numbers.clear();
    std::size_t at = 0;
    for (std::int64_t due = 1; due > 0; --due) {
        const std::size_t end = bytes.find('\n', at);
        if (end == std::string_view::npos) return 0;
        std::int64_t number = 0;
        std::from_chars(bytes.data() + at + 1, bytes.data() + end, number);
        if (bytes[at] == ':') {
            numbers.add(number);
        } else if (bytes[at] == '*') {
            due += number;
        } else if (bytes[at] != '+') {
            throw WrongAnswer{"the server says " + std::string{bytes.substr(at, end - at)}};
        }
        at = end + 1;
    }
    return at;
}

class Wire {
public:
    explicit Wire(int port) : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int on = 1;
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            ::close(socket_);
            throw std::runtime_error{"no connection to port " + std::to_string(port)};
        }
    }

    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;
    ~Wire() { ::close(socket_); }

    [[nodiscard]] int descriptor() const noexcept { return socket_; }

    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) throw std::runtime_error{"the server takes nothing"};
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }

    /// Reads once, and hands the numbers of each reply that is complete to `take`. Returns how many there were.
    template <class Take>
    std::size_t receive(const Take& take, int flags = 0) {
        const ssize_t count = ::recv(socket_, buffer_.data() + size_, buffer_.size() - size_, flags);
        if (count < 0 && (flags & MSG_DONTWAIT) != 0) return 0;
        if (count <= 0) throw std::runtime_error{"the server does not answer"};
        size_ += static_cast<std::size_t>(count);
        return hand_over(take);
    }

    /// Keeps `depth` commands in flight, as long as there are so many left.
    template <class Take>
    void run(const Batch& batch, std::size_t depth, const Take& take) {
        std::size_t sent = 0;
        for (std::size_t received = 0; received < batch.size(); received += receive(take)) {
            const std::size_t end = (std::min)(batch.size(), received + depth);
            send(batch.slice(sent, end));
            sent = end;
        }
    }

private:
    template <class Take>
    std::size_t hand_over(const Take& take) {
        std::string_view rest{buffer_.data(), size_};
        std::size_t replies = 0;
        while (const std::size_t length = parse_reply(rest, numbers_)) {
            take(numbers_.all());
            rest.remove_prefix(length);
            ++replies;
        }
        std::copy(rest.begin(), rest.end(), buffer_.begin());
        size_ = rest.size();
        return replies;
    }

    int socket_;
    std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 16U);
    std::size_t size_ = 0;
    Numbers numbers_;
};

/// Redis takes in 16 KiB at a time: so many commands keep it busy, and more do nothing for it.
inline constexpr std::size_t deep = 64;

/// Sends a batch of which each client has one command for each script, and adds the answers up.
[[nodiscard]] inline Tally answers_of(Wire& wire, std::span<const Script* const> scripts, const Batch& batch) {
    Tally tally;
    std::size_t turn = 0;
    wire.run(batch, deep, [&](std::span<const std::int64_t> reply) {
        tally.add(scripts[turn]->answer(reply));
        turn = turn + 1 == scripts.size() ? 0 : turn + 1;
    });
    return tally;
}

[[nodiscard]] inline Tally answers_of(Wire& wire, const Script& script, const Batch& batch) {
    return answers_of(wire, std::array{&script}, batch);
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_WIRE_HPP
