// SPDX-License-Identifier: MIT
// Plain sockets of servers that tests play themselves.
#ifndef PENSTOCK_TESTS_SUPPORT_TCP_HPP
#define PENSTOCK_TESTS_SUPPORT_TCP_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace support {

inline sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/// Listens on a free loopback port.
class TcpListener {
public:
    TcpListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        auto* any = reinterpret_cast<sockaddr*>(&address);
        if (::bind(socket_, any, size) != 0 || ::listen(socket_, 128) != 0 || ::getsockname(socket_, any, &size) != 0) {
            ::close(socket_);
            throw std::runtime_error("no free port");
        }
        port_ = ntohs(address.sin_port);
    }

    TcpListener(const TcpListener&) = delete;
    TcpListener& operator=(const TcpListener&) = delete;
    ~TcpListener() { ::close(socket_); }

    [[nodiscard]] int fd() const { return socket_; }
    [[nodiscard]] int port() const { return port_; }

    /// The next connection, or -1 once `stop` was called.
    [[nodiscard]] int accept() const {
        const int accepted = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
        const int on = 1;
        ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return accepted;
    }

    /// Wakes who waits in `accept`.
    void stop() const { ::shutdown(socket_, SHUT_RDWR); }

private:
    int socket_;
    int port_ = 0;
};

/// False if the peer takes no more.
inline bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_TCP_HPP
