// SPDX-License-Identifier: MIT
// RedisStorage: states in Redis or Valkey, shared by all processes that count together.
#ifndef PENSTOCK_STORAGE_REDIS_HPP
#define PENSTOCK_STORAGE_REDIS_HPP

#include <penstock/check.hpp>
#include <penstock/clock.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/os.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/hash.hpp>
#include <penstock/plan.hpp>
#include <penstock/redis/engine.hpp>
#include <penstock/redis/layout.hpp>
#include <penstock/redis/question.hpp>
#include <penstock/redis/settings.hpp>
#include <penstock/redis/tls.hpp>
#include <penstock/redis/url.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

PENSTOCK_BEGIN_NAMESPACE

/// How states are kept in a store: see redis/layout.hpp.
using Layout = redis::Layout;

/// Keeps clients' states in Redis 5 or later, or Valkey, and decides there, by one script call a check. Copies share
/// one connection to each server, one thread, and what is counted; a limiter keeps them alive. A server that is not
/// there is no error: it is connected to as soon as it is, and until then `on_failure` decides. Thread-safe.
class RedisStorage {
public:
    /// What is decided if the store cannot.
    using OnFailure = std::variant<Allow, Deny>;

    struct Options {
        /// `redis://[[user]:password@]host[:port][/database]` or `unix:///path`: one server.
        /// `redis+cluster://[auth@]a[:port],b,c`: a cluster that is looked for there.
        /// `redis+ring://a,b,c`: independent servers among which clients are spread.
        /// `rediss` instead of `redis`: the same with TLS.
        std::string url = "redis://127.0.0.1:6379";

        /// How long a call waits for its answer, at most: 1 us to 1 minute.
        std::chrono::microseconds timeout = std::chrono::milliseconds{5};

        /// For the look-up of a name, the connection and its greeting together: 1 ms to 1 minute.
        std::chrono::microseconds connect_timeout = std::chrono::seconds{1};

        /// A connection over which nothing comes for so long, though something was asked, is made again: 1 ms to 1
        /// hour.
        std::chrono::microseconds stall_timeout = std::chrono::seconds{1};

        /// The longest wait between attempts to connect: 1 ms to 1 hour. The first is after 50 ms.
        std::chrono::microseconds longest_wait = std::chrono::seconds{1};

        std::string user{};         ///< instead of the url's
        std::string password{};     ///< instead of the url's
        std::string client_name{};  ///< what CLIENT LIST shows; empty: nothing

        redis::Tls tls{};  ///< where the url begins with `rediss`

        /// What all keys begin with, without braces, blanks and control characters.
        std::string prefix = "penstock";

        /// Keeps the counts of limiters that share a prefix apart; empty: those of the same algorithms count together.
        std::string name{};

        Layout layout = Layout::packed;  ///< packed, or per_key: how states are kept

        /// How many clients (times limiters) there are at once, for the packed layout: 1 to 2^38. The first process
        /// decides for all; others follow it, and count the disagreement.
        std::uint64_t expected_entries = 1'000'000;

        /// Calls under way; above, they fail at once: 1 to 2^20.
        std::size_t max_in_flight = 10'000;

        /// What a failure of the store means: Allow or Deny.
        OnFailure on_failure = Allow{};
    };

    using DefaultClock = ServerClock;
    static constexpr bool is_shared = true;

    template <class Algorithm>
    class Bound;

    RedisStorage() : RedisStorage(Options{}) {}

    /// Throws std::invalid_argument if an option is out of range, or the url malformed.
    explicit RedisStorage(const Options& options)
        : options_(validated(options)), engine_(std::make_shared<redis::Engine>(settings_of(options_))) {}

    /// What happened since the storage was made.
    [[nodiscard]] redis::Stats stats() const noexcept { return engine_->stats(); }

private:
    template <class Rep>
    static void validate(std::string_view field, Rep value, Rep least, Rep most, std::string_view unit) {
        if (value < least || value > most) {
            const std::string suffix(unit);
            detail::throw_invalid("RedisStorage." + std::string(field),
                                  std::to_string(value) + suffix,
                                  std::to_string(least) + suffix + " to " + std::to_string(most) + suffix);
        }
    }

    static void validate_time(std::string_view field,
                              std::chrono::microseconds value,
                              std::int64_t least,
                              std::int64_t most) {
        validate<std::int64_t>(field, value.count(), least, most, " us");
    }

    [[nodiscard]] static const Options& validated(const Options& options) {
        constexpr std::int64_t millisecond = 1000;
        constexpr std::int64_t minute = 60'000'000;
        validate_time("timeout", options.timeout, 1, minute);
        validate_time("connect_timeout", options.connect_timeout, millisecond, minute);
        validate_time("stall_timeout", options.stall_timeout, millisecond, 60 * minute);
        validate_time("longest_wait", options.longest_wait, millisecond, 60 * minute);
        validate<std::uint64_t>("expected_entries", options.expected_entries, 1, std::uint64_t{1} << 38, "");
        validate<std::uint64_t>("max_in_flight", options.max_in_flight, 1, std::uint64_t{1} << 20, "");
        const auto plain = [](char byte) { return byte > ' ' && byte != '{' && byte != '}' && byte != 0x7f; };
        if (options.prefix.empty() || !std::all_of(options.prefix.begin(), options.prefix.end(), plain)) {
            detail::throw_invalid("RedisStorage.prefix",
                                  "'" + options.prefix + "'",
                                  "one or more ASCII characters but blanks, braces and control characters");
        }
        return options;
    }

    [[nodiscard]] static redis::Settings settings_of(const Options& options) {
        redis::Settings settings;
        settings.target = redis::parse_url(options.url);
        settings.target.user = options.user.empty() ? settings.target.user : options.user;
        settings.target.password = options.password.empty() ? settings.target.password : options.password;
        settings.tls = redis::tls_context_of(settings.target, options.tls);
        settings.connection = {.connect_timeout = options.connect_timeout.count(),
                               .stall_timeout = options.stall_timeout.count(),
                               .shortest_wait = (std::min)(std::int64_t{50'000}, options.longest_wait.count()),
                               .longest_wait = options.longest_wait.count()};
        settings.timeout = options.timeout.count();
        settings.most_in_flight = options.max_in_flight;
        settings.client_name = options.client_name;
        if (options.layout == Layout::packed) {
            settings.meta_key = options.prefix + ":meta";
            settings.meta = {.buckets = redis::bucket_count(options.expected_entries), .secret = detail::random_bits()};
        }
        return settings;
    }

    Options options_;
    std::shared_ptr<redis::Engine> engine_;
};

/// The states of one limiter. Thread-safe.
template <class Algorithm>
class RedisStorage::Bound {
    static_assert(
        requires { typename Algorithm::Lua; },
        "penstock: RedisStorage needs an algorithm that has its steps in Lua, too: one of the library's, or an "
        "AllOf of them");

    using Context = redis::Context<Algorithm>;
    using Question = redis::Question<Algorithm>;
    using Asked = typename Question::Asked;

public:
    explicit Bound(const RedisStorage& storage)
        : on_failure_(storage.options_.on_failure),
          context_(std::make_shared<Context>(storage.options_.layout, storage.options_.prefix, storage.options_.name)),
          engine_(storage.engine_) {}

    /// One round trip, of which several threads' calls share what they can. Waits at most the timeout.
    StoreError apply(Op op,
                     std::string_view key,
                     const Plan<Algorithm>& plan,
                     Micros now,
                     std::uint64_t cost,
                     std::chrono::microseconds max_wait,
                     Decision& decision) noexcept {
        Question question(*context_, Asked{op, key, &plan, now, cost, max_wait});
        redis::Call* const call = &question;
        engine_->run({&call, 1}, engine_->deadline());
        return question.answer(decision);
    }

    /// A batch, 64 in one round trip. Waits at most the timeout, for all of it.
    template <class Failed>
    void apply(std::span<const Check> checks,
               const Plan<Algorithm>& plan,
               Micros now,
               std::span<Decision> decisions,
               Failed failed) noexcept {
        std::array<std::optional<Question>, at_once> questions;
        std::array<redis::Call*, at_once> calls{};
        const std::int64_t end = engine_->deadline();
        for (std::size_t begin = 0; begin < checks.size(); begin += at_once) {
            const std::size_t size = (std::min)(at_once, checks.size() - begin);
            for (std::size_t i = 0; i < size; ++i) {
                const Check& check = checks[begin + i];
                questions[i].emplace(*context_, Asked{Op::check, check.key, &plan, now, check.cost, {}});
                calls[i] = &*questions[i];
            }
            engine_->run(std::span(calls).first(size), end);
            for (std::size_t i = 0; i < size; ++i) {
                const StoreError error = questions[i]->answer(decisions[begin + i]);
                if (error != StoreError::none) {
                    failed(begin + i, error);
                }
            }
        }
    }

    /// Never waits. `handler(StoreError, const Decision&)` runs exactly once: on the storage's thread, or here if there
    /// is no memory for the question.
    template <class Handler>
    void async_apply(Op op,
                     std::string_view key,
                     const Plan<Algorithm>& plan,
                     Micros now,
                     std::uint64_t cost,
                     Handler handler) noexcept {
        using Asks = AsyncQuestion<Handler>;
        auto* question = new (std::nothrow) Asks(*this, op, key, plan, now, cost, std::move(handler));
        if (question != nullptr) {
            engine_->submit(*question);
        } else {
            handler(StoreError::overloaded, failed(StoreError::overloaded));
        }
    }

    /// What `co_await` takes; resumes on the storage's thread.
    [[nodiscard]] auto awaitable(
        Op op, std::string_view key, const Plan<Algorithm>& plan, Micros now, std::uint64_t cost) noexcept {
        return Awaitable(*this, op, key, plan, now, cost);
    }

    /// The number of the server that has the key, as far as is known now.
    [[nodiscard]] std::size_t node_of(std::string_view key, Micros now) const noexcept {
        const Plan<Algorithm>* const none = nullptr;
        return engine_->node_of(Question(*context_, Asked{Op::peek, key, none, now, 0, {}}));
    }

    /// What an error of the store means.
    [[nodiscard]] Decision failed(StoreError) const noexcept { return meaning_of_failure(on_failure_); }

    /// What happened since the storage was made.
    [[nodiscard]] redis::Stats stats() const noexcept { return engine_->stats(); }

private:
    static constexpr std::size_t at_once = 64;

    template <class Handler>
    class AsyncQuestion;
    class Awaitable;

    /// What a question needs that nobody waits for.
    struct Owned {
        std::string own_key;
        Plan<Algorithm> own_plan;
        std::shared_ptr<const Context> own_context;
        OnFailure own_on_failure;
    };

    [[nodiscard]] static Decision meaning_of_failure(const OnFailure& on_failure) noexcept {
        return std::visit([](const auto& policy) { return detail::meaning_of(policy); }, on_failure);
    }

    /// The decision, or what it means that there is none.
    [[nodiscard]] static StoreError decide(const Question& question,
                                           const OnFailure& on_failure,
                                           Decision& decision) noexcept {
        const StoreError error = question.answer(decision);
        if (error != StoreError::none) {
            decision = meaning_of_failure(on_failure);
        }
        return error;
    }

    OnFailure on_failure_;
    std::shared_ptr<const Context> context_;
    std::shared_ptr<redis::Engine> engine_;  // the first to go: while it ends, handlers may ask again
};

/// A question that lives until its handler is called, with all that it needs.
template <class Algorithm>
template <class Handler>
class RedisStorage::Bound<Algorithm>::AsyncQuestion final : Owned, public redis::Question<Algorithm> {
public:
    AsyncQuestion(const Bound& bound,
                  Op op,
                  std::string_view key,
                  const Plan<Algorithm>& plan,
                  Micros now,
                  std::uint64_t cost,
                  Handler handler)
        : Owned{std::string(key), plan, bound.context_, bound.on_failure_},
          redis::Question<Algorithm>(*Owned::own_context, {op, Owned::own_key, &(Owned::own_plan), now, cost, {}}),
          handler_(std::move(handler)) {}

    void finished() noexcept override {
        Decision decision;
        const StoreError error = decide(*this, Owned::own_on_failure, decision);
        Handler handler = std::move(handler_);
        delete this;
        handler(error, decision);
    }

private:
    Handler handler_;
};

/// A question of a coroutine, which holds it while it is suspended.
template <class Algorithm>
class RedisStorage::Bound<Algorithm>::Awaitable final : Owned, public redis::Question<Algorithm> {
public:
    Awaitable(
        const Bound& bound, Op op, std::string_view key, const Plan<Algorithm>& plan, Micros now, std::uint64_t cost)
        : Owned{{}, plan, bound.context_, bound.on_failure_}, redis::Question<Algorithm>(
                                                                  *Owned::own_context,
                                                                  {op, key, &(Owned::own_plan), now, cost, {}}),
          engine_(*bound.engine_) {}

    /// A coroutine may be destroyed while it waits: then nobody is told.
    ~Awaitable() override {
        if (under_way_) {
            engine_.cancel(*this);
        }
    }

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }

    void await_suspend(std::coroutine_handle<> coroutine) noexcept {
        coroutine_ = coroutine;
        under_way_ = true;
        engine_.submit(*this);  // and no more of this: the coroutine may go on at once
    }

    [[nodiscard]] Decision await_resume() const noexcept {
        Decision decision;
        static_cast<void>(decide(*this, Owned::own_on_failure, decision));
        return decision;
    }

    void finished() noexcept override {
        under_way_ = false;
        coroutine_.resume();
    }

private:
    redis::Engine& engine_;
    std::coroutine_handle<> coroutine_;
    bool under_way_ = false;
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_STORAGE_REDIS_HPP
