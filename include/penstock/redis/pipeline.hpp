// SPDX-License-Identifier: MIT
// Pipeline: what one connection was asked, in the order in which the answers come. Pure: no socket, no clock.
#ifndef PENSTOCK_REDIS_PIPELINE_HPP
#define PENSTOCK_REDIS_PIPELINE_HPP

#include <penstock/config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

class Call;
struct Script;

/// A request under way.
struct Sent {
    enum class Kind : std::uint8_t {
        call,      ///< of a caller, or of one who has given up: then `call` is null and the answer is dropped
        greeting,  ///< what a connection begins with
        script,    ///< loads a script
        slots,     ///< asks a cluster which node has which slots
        meta,      ///< asks a cluster for its meta
        ignored,   ///< an answer that says nothing
    };

    Kind kind = Kind::call;
    Call* call = nullptr;
    const Script* script = nullptr;
};

/// Not thread-safe. All O(1).
class Pipeline {
public:
    /// Tells where the request stands, for `forget`.
    std::uint64_t push(const Sent& sent) {
        sent_.push_back(sent);
        return first_ + sent_.size() - 1;
    }

    /// Whose answer has come. Not when empty.
    Sent pop() {
        const Sent front = sent_.front();
        sent_.pop_front();
        ++first_;
        return front;
    }

    /// Its caller has given up.
    void forget(std::uint64_t position) { sent_[static_cast<std::size_t>(position - first_)].call = nullptr; }

    [[nodiscard]] bool empty() const noexcept { return sent_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return sent_.size(); }

private:
    std::deque<Sent> sent_;
    std::uint64_t first_ = 0;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_PIPELINE_HPP
