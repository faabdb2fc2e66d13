// SPDX-License-Identifier: MIT
// Awaitable: what `co_await` takes, made of a storage's async_apply.
#ifndef PENSTOCK_DETAIL_AWAITABLE_HPP
#define PENSTOCK_DETAIL_AWAITABLE_HPP

#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/plan.hpp>
#include <penstock/store.hpp>

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// The coroutine goes on where the handler is called, or at once if that is before async_apply returns. Destroyed while
/// it waits, it is told nothing: on the thread that calls handlers, or while nothing is asked.
template <class Bound, class Algorithm>
class Awaitable {
public:
    Awaitable(
        Bound& bound, Op op, std::string_view key, const Plan<Algorithm>& plan, Micros now, std::uint64_t cost) noexcept
        : bound_(bound), op_(op), key_(key), plan_(plan), now_(now), cost_(cost) {}

    Awaitable(const Awaitable&) = delete;
    Awaitable& operator=(const Awaitable&) = delete;

    ~Awaitable() {
        if (answer_ != nullptr) {
            answer_->state.store(State::abandoned, std::memory_order_relaxed);
        }
    }

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }

    [[nodiscard]] bool await_suspend(std::coroutine_handle<> coroutine) {
        answer_ = std::make_shared<Answer>();
        answer_->coroutine = coroutine;
        const std::shared_ptr<Answer> answer = answer_;  // this may be gone as soon as the coroutine may go on
        bound_.async_apply(op_, key_, plan_, now_, cost_, [answer](StoreError, const Decision& decision) {
            answer->decision = decision;
            if (answer->state.exchange(State::answered, std::memory_order_acq_rel) == State::suspended) {
                answer->coroutine.resume();
            }
        });
        State expected = State::asked;
        return answer->state.compare_exchange_strong(expected, State::suspended, std::memory_order_acq_rel);
    }

    [[nodiscard]] Decision await_resume() const noexcept { return answer_->decision; }

private:
    enum class State : std::uint8_t { asked, suspended, answered, abandoned };

    struct Answer {
        std::atomic<State> state{State::asked};
        std::coroutine_handle<> coroutine{};
        Decision decision{};
    };

    Bound& bound_;
    const Op op_;
    const std::string_view key_;
    const Plan<Algorithm> plan_;
    const Micros now_;
    const std::uint64_t cost_;
    std::shared_ptr<Answer> answer_;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_AWAITABLE_HPP
