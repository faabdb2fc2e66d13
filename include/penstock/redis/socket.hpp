// SPDX-License-Identifier: MIT
// Socket: a stream to a server that never blocks, raises no signal and is not inherited; and the addresses of a name.
#ifndef PENSTOCK_REDIS_SOCKET_HPP
#define PENSTOCK_REDIS_SOCKET_HPP

#include <penstock/config.hpp>
#include <penstock/redis/url.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Owns a file descriptor.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() { close(); }

    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

    void close() noexcept {
        if (fd_ >= 0) {
            ::close(std::exchange(fd_, -1));
        }
    }

private:
    int fd_ = -1;
};

/// Makes a descriptor non-blocking and closed in programs that the host starts.
inline void set_quiet(int fd) noexcept {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/// Where a server listens.
struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

/// All addresses of an endpoint, none if it has none. A name may block for as long as the system's resolver likes;
/// `only_numbers` refuses names and never blocks.
[[nodiscard]] inline std::vector<Address> addresses_of(const Endpoint& endpoint, bool only_numbers) {
    std::vector<Address> addresses;
    if (!endpoint.path.empty()) {
        sockaddr_un local{};
        local.sun_family = AF_UNIX;
        if (endpoint.path.size() < sizeof local.sun_path) {
            std::memcpy(local.sun_path, endpoint.path.data(), endpoint.path.size());
            Address& address = addresses.emplace_back();
            std::memcpy(&address.storage, &local, sizeof local);
            address.size = sizeof local;
        }
        return addresses;
    }
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (only_numbers ? AI_NUMERICHOST : 0);
    addrinfo* found = nullptr;
    if (getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found) != 0) {
        return addresses;
    }
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        Address& address = addresses.emplace_back();
        std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
        address.size = each->ai_addrlen;
    }
    freeaddrinfo(found);
    return addresses;
}

/// A connection. Not thread-safe.
class Socket {
public:
    /// Begins to connect; without a descriptor if that failed at once.
    [[nodiscard]] static Socket connect(const Address& address) noexcept {
        Socket made;
        const int family = address.storage.ss_family;
        made.descriptor_ = Descriptor(::socket(family, SOCK_STREAM, 0));
        if (!made.descriptor_) {
            return made;
        }
        const int fd = made.descriptor_.get();
        set_quiet(fd);
        const int on = 1;
        if (family != AF_UNIX) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        }
#if defined(SO_NOSIGPIPE)
        setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
        const auto* to = reinterpret_cast<const sockaddr*>(&address.storage);
        if (::connect(fd, to, address.size) != 0 && errno != EINPROGRESS && errno != EINTR) {
            made.close();
        }
        return made;
    }

    [[nodiscard]] int fd() const noexcept {
        return descriptor_.get();
    }
    [[nodiscard]] explicit operator bool() const noexcept {
        return static_cast<bool>(descriptor_);
    }
    void close() noexcept {
        descriptor_.close();
    }

    /// Whether a connection that has become writable is one.
    [[nodiscard]] bool connected() const noexcept {
        int error = 0;
        socklen_t size = sizeof error;
        return getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    }

    enum class Result : std::uint8_t { done, later, closed };

    /// Sends what the system takes, and drops that from the front of `bytes`.
    [[nodiscard]] Result send(std::string_view& bytes) noexcept {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd(), bytes.data(), bytes.size(), send_flags);
            if (sent < 0) {
                if (errno == EINTR) {
                    continue;
                }
                return errno == EAGAIN || errno == EWOULDBLOCK ? Result::later : Result::closed;
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return Result::done;
    }

    /// Fills the buffer as far as there is something; `received` is how far.
    [[nodiscard]] Result receive(std::span<char> buffer, std::size_t& received) noexcept {
        for (;;) {
            const ssize_t size = ::recv(fd(), buffer.data(), buffer.size(), 0);
            if (size > 0) {
                received = static_cast<std::size_t>(size);
                return Result::done;
            }
            if (size < 0 && errno == EINTR) {
                continue;
            }
            return size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? Result::later : Result::closed;
        }
    }

private:
#if defined(MSG_NOSIGNAL)
    static constexpr int send_flags = MSG_NOSIGNAL;
#else
    static constexpr int send_flags = 0;
#endif

    Descriptor descriptor_;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_SOCKET_HPP
