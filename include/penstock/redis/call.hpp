// SPDX-License-Identifier: MIT
// Call: one question to a store, from when it is asked until its caller knows the answer.
#ifndef PENSTOCK_REDIS_CALL_HPP
#define PENSTOCK_REDIS_CALL_HPP

#include <penstock/config.hpp>
#include <penstock/redis/event.hpp>
#include <penstock/redis/meta.hpp>
#include <penstock/redis/script.hpp>
#include <penstock/store.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

class Core;

/// What decides where a call is sent, how it is written and who is told of its end is up to those who derive. A call
/// belongs to the engine from `Engine::submit` or `Engine::run` until it is finished; then its caller may destroy it.
class Call {
public:
    Call() = default;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    virtual ~Call() = default;

    /// Whose state it is about.
    [[nodiscard]] virtual std::string_view key() const noexcept = 0;

    /// In a cluster: the slot in which it stands.
    [[nodiscard]] virtual std::uint16_t slot(const Meta& meta) const = 0;

    /// What the server runs.
    [[nodiscard]] virtual const Script& script() const noexcept = 0;

    /// Appends the EVALSHA. Again if the server did not know the script, or another server is to be asked.
    virtual void write(std::string& out, const Meta& meta) const = 0;

    /// The numbers are there: whether they mean something. Once, under the engine's lock.
    [[nodiscard]] virtual bool understand() noexcept { return true; }

    /// The answer is there: `error()` is none and `numbers()` is what the script returned, or it says why there is no
    /// answer. Exactly once, on the engine's thread; the call may destroy itself. Not for calls of Engine::run.
    virtual void finished() noexcept = 0;

    [[nodiscard]] StoreError error() const noexcept { return error_; }
    [[nodiscard]] std::span<const std::int64_t> numbers() const noexcept { return std::span(numbers_).first(count_); }

protected:
    static constexpr std::size_t most_numbers = 8;

private:
    friend class Calls;
    friend class Core;
    friend class Traffic;

    detail::Event done_;  // of a caller who waits
    bool waited_for_ = false;
    const Core* core_ = nullptr;  // of others: where it is, until its end is told
    bool ended_ = false;
    std::uint8_t retries_ = 0;
    StoreError error_ = StoreError::none;
    std::size_t count_ = 0;
    std::array<std::int64_t, most_numbers> numbers_{};
    std::int64_t deadline_ = 0;

    // Where it is: at which node, and whether it was sent, and then where in the pipeline.
    std::size_t node_ = 0;
    bool sent_ = false;
    bool asking_ = false;  // of a node to which the slot is on its way
    std::uint64_t position_ = 0;

    // Its neighbours in a list of calls.
    Call* before_ = nullptr;
    Call* after_ = nullptr;
};

/// Calls in the order in which they were added; each stands in one list at most. Not thread-safe. All O(1).
class Calls {
public:
    void add(Call& call) noexcept {
        call.before_ = last_;
        call.after_ = nullptr;
        (last_ != nullptr ? last_->after_ : first_) = &call;
        last_ = &call;
        ++size_;
    }

    void remove(Call& call) noexcept {
        (call.before_ != nullptr ? call.before_->after_ : first_) = call.after_;
        (call.after_ != nullptr ? call.after_->before_ : last_) = call.before_;
        --size_;
    }

    [[nodiscard]] Call* first() const noexcept { return first_; }
    [[nodiscard]] static Call* next(const Call& call) noexcept { return call.after_; }
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    Call* first_ = nullptr;
    Call* last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_CALL_HPP
