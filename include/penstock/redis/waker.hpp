// SPDX-License-Identifier: MIT
// Waker: ends another thread's wait in poll().
#ifndef PENSTOCK_REDIS_WAKER_HPP
#define PENSTOCK_REDIS_WAKER_HPP

#include <penstock/config.hpp>
#include <penstock/redis/socket.hpp>

#include <array>

#include <unistd.h>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// A pipe to oneself. Thread-safe.
class Waker {
public:
    Waker() noexcept {
        std::array<int, 2> ends{-1, -1};
        if (pipe(ends.data()) == 0) {
            read_ = Descriptor(ends[0]);
            write_ = Descriptor(ends[1]);
            set_quiet(ends[0]);
            set_quiet(ends[1]);
        }
    }

    /// Readable once woken, until cleared.
    [[nodiscard]] int fd() const noexcept { return read_.get(); }

    void wake() const noexcept {
        const char byte = 0;
        (void)!write(write_.get(), &byte, 1);  // a full pipe wakes as well
    }

    /// In a fork's child, where the pipe is the parent's.
    void close() noexcept {
        read_.close();
        write_.close();
    }

    void clear() const noexcept {
        std::array<char, 64> bytes;
        while (read(read_.get(), bytes.data(), bytes.size()) > 0) {
        }
    }

private:
    Descriptor read_;
    Descriptor write_;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_WAKER_HPP
