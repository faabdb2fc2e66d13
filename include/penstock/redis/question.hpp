// SPDX-License-Identifier: MIT
// Question: a call about a client's state: how it is written and what its answer means.
#ifndef PENSTOCK_REDIS_QUESTION_HPP
#define PENSTOCK_REDIS_QUESTION_HPP

#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/hash.hpp>
#include <penstock/plan.hpp>
#include <penstock/redis/call.hpp>
#include <penstock/redis/layout.hpp>
#include <penstock/redis/meta.hpp>
#include <penstock/redis/resp.hpp>
#include <penstock/redis/script.hpp>
#include <penstock/redis/slot.hpp>
#include <penstock/store.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// What all questions of a limiter share. Immutable.
template <class Algorithm>
class Context {
public:
    Context(Layout layout, std::string prefix, std::string name)
        : layout_(layout), prefix_(std::move(prefix)),
          name_(name.empty() ? Scripts<Algorithm>::algorithm_name() : std::move(name)),
          on_server_time_(layout, Time::server), on_limiter_time_(layout, Time::limiter) {}

    [[nodiscard]] const Script& script(Op op, Micros now) const noexcept { return scripts(now).script(op); }

    /// The key under which a client's state stands.
    [[nodiscard]] std::string store_key(const Meta& meta, std::string_view client, Micros now) const {
        return layout_ == Layout::packed ? bucket_key(place_of(meta, client), now) : client_key(client);
    }

    /// Appends the EVALSHA. `now` may be store_time.
    void write(std::string& out,
               const Meta& meta,
               Op op,
               std::string_view key,
               const Plan<Algorithm>& plan,
               Micros now,
               std::uint64_t cost,
               std::chrono::microseconds max_wait) const {
        append_array_header(out, layout_ == Layout::packed ? 6 : 5);
        append_bulk(out, std::string_view("EVALSHA"));
        append_bulk(out, std::string_view(script(op, now).sha1));
        append_bulk(out, std::string_view("1"));
        if (layout_ == Layout::packed) {
            const PackedPlace place = place_of(meta, key);
            append_bulk(out, std::string_view(bucket_key(place, now)));
            append_bulk(out, place.name());
        } else {
            append_bulk(out, std::string_view(client_key(key)));
        }
        const Micros phase = penstock::detail::is_staggered(plan) ? stagger_hash(key) : 0;
        scripts(now).push(
            op, plan, now, cost, phase, max_wait, [&out](std::string_view argument) { append_bulk(out, argument); });
    }

private:
    [[nodiscard]] std::string bucket_key(const PackedPlace& place, Micros now) const {
        std::string name;
        append_bucket_key(name, prefix_, place.bucket, now == store_time ? Time::server : Time::limiter);
        return name;
    }

    [[nodiscard]] std::string client_key(std::string_view client) const {
        std::string name;
        append_client_key(name, prefix_, client, name_);
        return name;
    }

    [[nodiscard]] PackedPlace place_of(const Meta& meta, std::string_view client) const noexcept {
        return packed_place(client, meta.secret, name_hash(name_, meta.secret), meta.buckets);
    }

    [[nodiscard]] const Scripts<Algorithm>& scripts(Micros now) const noexcept {
        return now == store_time ? on_server_time_ : on_limiter_time_;
    }

    Layout layout_;
    std::string prefix_;
    std::string name_;
    Scripts<Algorithm> on_server_time_;
    Scripts<Algorithm> on_limiter_time_;
};

/// Key, plan and context must live until the question is finished.
template <class Algorithm>
class Question : public Call {
public:
    struct Asked {
        Op op = Op::check;
        std::string_view key{};
        const Plan<Algorithm>* plan = nullptr;
        Micros now = 0;
        std::uint64_t cost = 0;
        std::chrono::microseconds max_wait{0};
    };

    Question(const Context<Algorithm>& context, const Asked& asked) noexcept : context_(&context), asked_(asked) {}

    [[nodiscard]] std::string_view key() const noexcept final { return asked_.key; }

    [[nodiscard]] std::uint16_t slot(const Meta& meta) const final {
        return slot_of(context_->store_key(meta, asked_.key, asked_.now));
    }

    [[nodiscard]] const Script& script() const noexcept final { return context_->script(asked_.op, asked_.now); }

    void write(std::string& out, const Meta& meta) const final {
        const auto& [op, key, plan, now, cost, max_wait] = asked_;
        context_->write(out, meta, op, key, *plan, now, cost, max_wait);
    }

    /// For those who wait.
    void finished() noexcept override {}

    /// Makes a decision of the numbers, if they are one.
    [[nodiscard]] bool understand() noexcept final {
        const std::uint64_t limit = Scripts<Algorithm>::limit_of(*asked_.plan);
        understood_ = Scripts<Algorithm>::decision(numbers(), asked_.op, limit, decision_);
        return understood_;
    }

    /// Once finished: the decision, or why there is none.
    [[nodiscard]] StoreError answer(Decision& decision) const noexcept {
        if (error() != StoreError::none) {
            return error();
        }
        if (!understood_) {
            return StoreError::protocol_error;
        }
        penstock::detail::copy_fields(decision, decision_);
        return StoreError::none;
    }

private:
    const Context<Algorithm>* context_;
    Asked asked_;
    Decision decision_;
    bool understood_ = false;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_QUESTION_HPP
