// SPDX-License-Identifier: MIT
// Scripts: an algorithm's steps as Redis runs them: the texts, their arguments, and what their replies mean.
#ifndef PENSTOCK_REDIS_SCRIPT_HPP
#define PENSTOCK_REDIS_SCRIPT_HPP

#include <penstock/algorithm/all_of.hpp>
#include <penstock/concepts.hpp>
#include <penstock/config.hpp>
#include <penstock/decision.hpp>
#include <penstock/detail/lua.hpp>
#include <penstock/plan.hpp>
#include <penstock/redis/composer.hpp>
#include <penstock/redis/layout.hpp>
#include <penstock/redis/sha1.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// What is asked of a script, as one string of little-endian numbers: the server takes a single argument apart faster
/// than it takes in several.
template <std::size_t Numbers>
class ScriptArguments {
public:
    explicit ScriptArguments(Op op) noexcept { bytes_[size_++] = static_cast<char>(op); }

    void add(std::uint64_t number) noexcept {
        const std::uint64_t most = end_of_time - 1;
        number = number < most ? number : most;
        for (std::size_t byte = 0; byte < width; ++byte, number >>= 8) {
            bytes_[size_++] = static_cast<char>(number & 0xffU);
        }
    }

    [[nodiscard]] std::string_view bytes() const noexcept { return {bytes_.data(), size_}; }

private:
    static constexpr std::size_t width = 7;

    std::array<char, 1 + width * Numbers> bytes_;
    std::size_t size_ = 0;
};

template <class Algorithm>
struct LuaTwinsOf {
    static constexpr std::array<LuaTwin, 1> value{Algorithm::Lua::twin};
    static constexpr bool joined = false;
};

template <class... Parts>
struct LuaTwinsOf<AllOf<Parts...>> {
    static constexpr auto value = AllOf<Parts...>::Lua::twins;
    static constexpr bool joined = true;
};

template <class Algorithm>
[[nodiscard]] inline ScriptComposer script_composer(redis::Layout layout, redis::Time time) {
    return {LuaTwinsOf<Algorithm>::value, LuaTwinsOf<Algorithm>::joined, layout, time};
}

}  // namespace detail

namespace redis {

/// A script, and the name by which EVALSHA calls it.
struct Script {
    explicit Script(std::string lua) : text(std::move(lua)), sha1(redis::sha1(text)) {}

    std::string text;
    std::string sha1;
};

/// The scripts of an algorithm in a layout. A call is EVALSHA, the `sha1` of `script(op)`, 1, the key, then, in a
/// packed layout, the field, then what `push` appends. A script answers with integers, which `decision` reads, or with
/// an error: PENSTOCK_FORMAT is a value that a newer version wrote, or that is none of ours. It writes only what an
/// operation changed, in one command that sets the TTL with it or leaves one that reaches far enough.
template <class Algorithm>
class Scripts {
public:
    /// "bucket", or "bucket+fixed": tells limiters without a name apart.
    [[nodiscard]] static std::string algorithm_name() {
        std::string name;
        for (const penstock::detail::LuaTwin& twin : penstock::detail::LuaTwinsOf<Algorithm>::value) {
            name.append(name.empty() ? "" : "+").append(twin.name);
        }
        return name;
    }

    Scripts(Layout layout, Time time)
        : time_(time), check_(detail::script_composer<Algorithm>(layout, time).check()),
          others_(detail::script_composer<Algorithm>(layout, time).others()) {}

    /// The script that does it.
    [[nodiscard]] const Script& script(Op op) const noexcept { return is_check(op) ? check_ : others_; }

    /// Hands the last argument of a call to `push_argument(std::string_view)`. `now` counts only where the time is the
    /// limiter's, `max_wait` only for Op::reserve. O(1), no allocation.
    template <class Push>
    void push(Op op,
              const Plan<Algorithm>& plan,
              Micros now,
              std::uint64_t cost,
              Micros phase,
              std::chrono::microseconds max_wait,
              Push&& push_argument) const {
        const auto numbers = Algorithm::Lua::numbers(plan, phase);
        detail::ScriptArguments<std::tuple_size_v<decltype(numbers)> + 4> arguments(
            op == Op::peek || !is_check(op) ? op : Op::check);
        arguments.add(cost);
        if (!is_check(op)) {
            // In two pieces: a wait may be longer than a number in a script.
            const auto patience = static_cast<std::uint64_t>((std::max)(max_wait.count(), std::int64_t{0}));
            arguments.add(patience);
            arguments.add(patience > largest ? patience - largest : 0);
        }
        if (time_ == Time::limiter) {
            arguments.add(now);
        }
        for (const std::uint64_t number : numbers) {
            arguments.add(number);
        }
        push_argument(arguments.bytes());
    }

    /// The limit that decisions under a plan tell, or 0 where the reply tells it.
    [[nodiscard]] static constexpr std::uint64_t limit_of(const Plan<Algorithm>& plan) noexcept {
        return joined ? 0 : Algorithm::Lua::numbers(plan, 0)[0];
    }

    /// Reads a reply; `limit` is limit_of the call's plan. False, and the decision as it was, if no script of ours
    /// sends such. That of Op::reset is no decision.
    [[nodiscard]] static bool decision(std::span<const std::int64_t> reply,
                                       Op op,
                                       std::uint64_t limit,
                                       Decision& decision) noexcept {
        if (op == Op::reset) {
            return reply.empty();
        }
        if (reply.size() == 1 && !joined && is_check(op)) {
            return short_decision(reply[0], limit, decision);
        }
        if ((reply.size() != fields && reply.size() != fields + 2) || !in_range(reply)) {
            return false;
        }
        const std::int64_t verdict = reply[0];
        if (verdict > 0 && op != Op::reserve) {
            return false;
        }
        Decision read{.allowed = verdict >= 0,
                      .limit = joined ? static_cast<std::uint64_t>(reply[3]) : limit,
                      .remaining = static_cast<std::uint64_t>(reply[1]),
                      .retry_after = std::chrono::microseconds(verdict >= 0 ? verdict : -1 - verdict),
                      .reset_after = std::chrono::microseconds(reply[2])};
        if (read.remaining > read.limit || read.limit > detail::largest_limit) {
            return false;
        }
        if (reply.size() > fields) {
            add_lag(read.reset_after, reply[fields]);
            add_lag(read.retry_after, reply[fields + 1]);
        }
        if (verdict == -1) {
            read.retry_after = never;
        }
        detail::copy_fields(decision, read);
        return true;
    }

private:
    static constexpr bool joined = detail::LuaTwinsOf<Algorithm>::joined;
    static constexpr std::size_t fields = joined ? 4 : 3;
    static constexpr std::uint64_t largest = detail::end_of_time - 1;

    /// An operation that the algorithm has not is a check, as in LocalStorage.
    [[nodiscard]] static constexpr bool is_check(Op op) noexcept {
        return op == Op::check || op == Op::peek || (op == Op::reserve && !Reservable<Algorithm>);
    }

    /// A reply of one number: both what is left and the wait until reset, or, below zero, both waits of a cost that was
    /// rejected where nothing is left.
    [[nodiscard]] static bool short_decision(std::int64_t number, std::uint64_t limit, Decision& decision) noexcept {
        const bool allowed = number >= 0;
        const auto both = static_cast<std::uint64_t>(allowed ? number : -1 - number);
        const std::uint64_t base = allowed ? limit + 1 : detail::LuaFrame::short_base;
        const std::uint64_t rest = both % base;
        if (both > largest || (!allowed && rest == 0)) {
            return false;
        }
        decision = {.allowed = allowed,
                    .limit = limit,
                    .remaining = allowed ? rest : 0,
                    .retry_after = micros(allowed ? 0 : rest),
                    .reset_after = micros(both / base)};
        return true;
    }

    [[nodiscard]] static std::chrono::microseconds micros(std::uint64_t count) noexcept {
        return std::chrono::microseconds(static_cast<std::int64_t>(count));
    }

    [[nodiscard]] static bool in_range(std::span<const std::int64_t> reply) noexcept {
        constexpr auto most = static_cast<std::int64_t>(largest);
        return reply[0] >= -1 - most && reply[0] <= most &&
               std::all_of(
                   reply.begin() + 1, reply.end(), [](std::int64_t number) { return number >= 0 && number <= most; });
    }

    /// How far the clock stands before the stamp is told beside the waits, since the sums may pass 2^53.
    static void add_lag(std::chrono::microseconds& wait, std::int64_t lag) noexcept {
        if (wait.count() > 0) {
            wait += std::chrono::microseconds(lag);
        }
    }

    Time time_;
    Script check_;
    Script others_;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_SCRIPT_HPP
