// SPDX-License-Identifier: MIT
// Node: one server: its connection and what goes over it.
#ifndef PENSTOCK_REDIS_NODE_HPP
#define PENSTOCK_REDIS_NODE_HPP

#include <penstock/config.hpp>
#include <penstock/redis/call.hpp>
#include <penstock/redis/connection_fsm.hpp>
#include <penstock/redis/hiredis.hpp>
#include <penstock/redis/meta.hpp>
#include <penstock/redis/pipeline.hpp>
#include <penstock/redis/resolver.hpp>
#include <penstock/redis/socket.hpp>
#include <penstock/redis/stream.hpp>
#include <penstock/redis/tls.hpp>
#include <penstock/redis/url.hpp>
#include <penstock/redis/waker.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Not thread-safe: its public members, and what changes them, belong to the core's lock; the socket, and what is read
/// and written there, to the thread that is in charge of the I/O.
class Node {
public:
    /// With TLS if there is a context.
    Node(Endpoint endpoint, const ConnectionFsm::Settings& settings, std::shared_ptr<const TlsContext> tls)
        : fsm(settings), endpoint_(std::move(endpoint)), tls_(std::move(tls)) {}

    ConnectionFsm fsm;
    Meta meta;
    std::int64_t renew_meta_at = (std::numeric_limits<std::int64_t>::max)();
    Pipeline pipeline;
    std::string inbox;                         // written by callers, sent next
    std::deque<Call*> waiting;                 // for the connection
    std::vector<const Script*> loading;        // scripts whose loading is under way
    std::vector<const Script*> loaded;         // and those that the server has got
    std::size_t greeted = 0;                   // answers to the greeting so far
    bool established = false;                  // the socket is connected, and TLS agreed upon
    bool closed = false;                       // and was found closed, or broken
    bool wanted = true;                        // or a cluster has no more use for it
    std::int64_t keep_until = 0;               // the connection, though the server turned out to be a replica
    StoreError load_error = StoreError::none;  // why the server did not take the last script

    [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }
    [[nodiscard]] const Socket& socket() const noexcept { return stream_.socket(); }

    /// Whether a caller's request may be written to the inbox.
    [[nodiscard]] bool ready() const noexcept { return fsm.phase() == ConnectionFsm::Phase::ready; }

    /// Begins to look for the server.
    void look_up(const std::shared_ptr<const Waker>& waker) {
        if (!resolution_.has_value()) {
            resolution_.emplace(endpoint_, waker);
        }
        tried_ = 0;
        tls_failed_ = false;
    }

    /// Goes on with connecting: addresses are tried one after the other, in the next attempt from the next one on.
    /// False if none is left.
    [[nodiscard]] bool connect_further() {
        if (stream_.socket() || !resolution_->done()) {
            return true;
        }
        const std::vector<Address>& addresses = resolution_->addresses();
        while (tried_++ < addresses.size()) {
            if (stream_.connect(addresses[next_address_++ % addresses.size()], tls_.get(), endpoint_.host)) {
                return true;
            }
        }
        return false;
    }

    /// Something happened to the connection under way: whether it stands now.
    [[nodiscard]] bool connected() noexcept {
        if (stream_.state() == Stream::State::failed) {
            tls_failed_ = stream_.tls_failed() || tls_failed_;
            stream_.close();
        }
        if (stream_.state() != Stream::State::open) {
            return false;
        }
        tls_failed_ = false;
        return true;
    }

    /// Why there is no connection, or none any more.
    [[nodiscard]] StoreError failure() const noexcept {
        return tls_failed_ || stream_.tls_failed() ? StoreError::tls_failed : StoreError::unavailable;
    }

    /// What poll() is to wait for.
    [[nodiscard]] short events() const noexcept { return stream_.events(has_output()); }

    /// Does what can be done now that poll() has told those events, but for sending.
    void perform(short polled, std::span<char> buffer) noexcept {
        if (!established && polled != 0) {
            stream_.advance();
        } else if (established && stream_.receives_at(polled)) {
            closed = !receive(buffer);
        }
    }

    [[nodiscard]] bool has_output() const noexcept { return !unsent_.empty(); }

    /// Takes over what is to be sent. Under the engine's lock.
    void take_inbox() {
        if (unsent_.empty()) {
            output_.clear();
            output_.swap(inbox);
            unsent_ = output_;
        } else if (!inbox.empty()) {
            output_ = std::string(unsent_) + inbox;
            inbox.clear();
            unsent_ = output_;
        }
    }

    /// False if the connection is broken.
    [[nodiscard]] bool send() noexcept { return stream_.send(unsent_) != Socket::Result::closed; }

    /// Sends what callers have written, if it goes out at once: for who has the lock and is not in charge of the I/O,
    /// while nobody else sends. A TLS session may be received from meanwhile: there it does nothing. False if something
    /// is left.
    [[nodiscard]] bool send_now() noexcept {
        if (tls_ == nullptr && !has_output()) {
            take_inbox();
            (void)stream_.send(unsent_);  // a broken connection is found by who is in charge
        }
        return inbox.empty() && !has_output();
    }

    /// Reads what there is, but no more than can be taken apart in one go. False if the connection is broken, or what
    /// came is no reply.
    [[nodiscard]] bool receive(std::span<char> buffer) noexcept {
        for (std::size_t read = 0; read < ReplyReader::longest / 2; read += buffer.size()) {
            std::size_t received = 0;
            switch (stream_.receive(buffer, received)) {
            case Socket::Result::closed:
                return false;
            case Socket::Result::later:
                return true;
            case Socket::Result::done:
                if (!reader_.feed({buffer.data(), received})) {
                    return false;
                }
                if (!stream_.has_more(received, buffer.size())) {
                    return true;
                }
            }
        }
        return true;
    }

    [[nodiscard]] ReplyReader& reader() noexcept { return reader_; }

    void disconnect() {
        stream_.close();
        if (resolution_.has_value() && resolution_->done()) {
            resolution_.reset();  // or each attempt would leave another thread with a resolver that hangs
        }
        reader_.reset();
        output_.clear();
        unsent_ = {};
        inbox.clear();
        loading.clear();
        loaded.clear();
        load_error = StoreError::none;
        greeted = 0;
        established = false;
        closed = false;
    }

    /// In a fork's child, where the connection is the parent's.
    void close_descriptor() noexcept { stream_.close_descriptor(); }

private:
    Endpoint endpoint_;
    std::optional<Resolution> resolution_;
    std::size_t next_address_ = 0;
    std::size_t tried_ = 0;
    const std::shared_ptr<const TlsContext> tls_;
    Stream stream_;
    bool tls_failed_ = false;  // at an address that was tried
    ReplyReader reader_;
    std::string output_;
    std::string_view unsent_;  // the rest of it
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_NODE_HPP
