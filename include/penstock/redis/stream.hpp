// SPDX-License-Identifier: MIT
// Stream: a connection to a server with or without TLS.
#ifndef PENSTOCK_REDIS_STREAM_HPP
#define PENSTOCK_REDIS_STREAM_HPP

#include <penstock/config.hpp>
#include <penstock/redis/socket.hpp>
#include <penstock/redis/tls.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <poll.h>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Not thread-safe; stays where it is.
class Stream {
public:
    using Result = Socket::Result;
    enum class State : std::uint8_t { closed, connecting, shaking_hands, open, failed };

    Stream() = default;
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    [[nodiscard]] State state() const noexcept { return state_; }
    [[nodiscard]] const Socket& socket() const noexcept { return socket_; }

    /// Whether TLS, not the network, is why it failed or was closed.
    [[nodiscard]] bool tls_failed() const noexcept { return session_.has_value() && session_->failed(); }

    /// Begins to connect to the server of that name; with TLS if there is a context. False if that failed at once.
    [[nodiscard]] bool connect(const Address& address, const TlsContext* tls, const std::string& host) noexcept {
        close();
        socket_ = Socket::connect(address);
        if (!socket_) {
            return false;
        }
        if (tls != nullptr) {
            session_.emplace(*tls, socket_, host);
        }
        state_ = State::connecting;
        return true;
    }

    /// Goes on to be `open` or `failed`, once poll() has told one of `events`.
    void advance() noexcept {
        if (state_ == State::connecting) {
            const State next = session_.has_value() ? State::shaking_hands : State::open;
            state_ = socket_.connected() ? next : State::failed;
        }
        if (state_ == State::shaking_hands) {
            const Result result = session_->shake_hands();
            if (result != Result::later) {
                state_ = result == Result::done ? State::open : State::failed;
            }
        }
    }

    /// What poll() is to wait for; whether there is something to send. To ask whether it can be written to while TLS
    /// waits for the server would be answered at once, again and again; which is just right if there is more to
    /// receive already.
    [[nodiscard]] short events(bool output) const noexcept {
        if (state_ == State::connecting) {
            return POLLIN | POLLOUT;
        } else if (!session_.has_value()) {
            return static_cast<short>(POLLIN | (output ? POLLOUT : 0));
        } else if (state_ == State::open && session_->has_more()) {
            return POLLIN | POLLOUT;
        }
        const bool sends = output && state_ == State::open;
        return static_cast<short>(session_->receive_waits_for() | (sends ? session_->send_waits_for() : 0));
    }

    /// Whether to receive now that poll() has told those events.
    [[nodiscard]] bool receives_at(short events) const noexcept {
        const bool at_any = session_.has_value() && (session_->has_more() || session_->receive_waits_for() == POLLOUT);
        return (events & ~POLLOUT) != 0 || (at_any && events != 0);
    }

    /// Sends what is taken, and drops that from the front of `bytes`; what is not has to stand there the next time.
    [[nodiscard]] Result send(std::string_view& bytes) noexcept {
        return session_.has_value() ? session_->send(bytes) : socket_.send(bytes);
    }

    /// Fills the buffer with something; `received` is how far.
    [[nodiscard]] Result receive(std::span<char> buffer, std::size_t& received) noexcept {
        return session_.has_value() ? session_->receive(buffer, received) : socket_.receive(buffer, received);
    }

    /// Whether there may be more to receive at once, after so much in a buffer of that size.
    [[nodiscard]] bool has_more(std::size_t received, std::size_t size) const noexcept {
        return session_.has_value() ? session_->has_more() : received == size;
    }

    void close() noexcept {
        session_.reset();
        close_descriptor();
    }

    /// In a fork's child, whose copy of what TLS needs may be half written.
    void close_descriptor() noexcept {
        socket_.close();
        state_ = State::closed;
    }

private:
    Socket socket_;
    std::optional<TlsSession> session_;
    State state_ = State::closed;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_STREAM_HPP
