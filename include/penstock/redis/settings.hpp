// SPDX-License-Identifier: MIT
// Settings of an engine, what a connection begins with, and what an engine counts.
#ifndef PENSTOCK_REDIS_SETTINGS_HPP
#define PENSTOCK_REDIS_SETTINGS_HPP

#include <penstock/config.hpp>
#include <penstock/redis/connection_fsm.hpp>
#include <penstock/redis/meta.hpp>
#include <penstock/redis/resp.hpp>
#include <penstock/redis/tls.hpp>
#include <penstock/redis/url.hpp>
#include <penstock/store.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Valid when the engine is made: RedisStorage sees to that. Times are microseconds.
struct Settings {
    Target target{};                          ///< where the servers are, and who connects
    std::shared_ptr<const TlsContext> tls{};  ///< none: without TLS
    ConnectionFsm::Settings connection{};     ///< of each server
    std::int64_t timeout = 5000;              ///< until a call ends without an answer
    std::size_t most_in_flight = 10'000;      ///< calls; above, they end at once
    std::string client_name{};                ///< empty: none is told
    std::string meta_key{};                   ///< empty: the layout needs no meta
    Meta meta{};                              ///< what it is if nobody was there before
};

/// What happened since the start. Every call that was asked is counted once in `ended`, or in `cancelled`.
struct Stats {
    std::array<std::uint64_t, store_errors>
        ended{};                      ///< calls by how they ended: ended[StoreError::none] were answered
    std::uint64_t cancelled = 0;      ///< calls whose coroutine was destroyed before it had an answer
    std::uint64_t sent = 0;           ///< requests, repeated ones too
    std::uint64_t late = 0;           ///< answers that nobody waited for any more
    std::uint64_t loads = 0;          ///< scripts sent because a server did not know them
    std::uint64_t connects = 0;       ///< attempts to connect
    std::uint64_t losses = 0;         ///< connections that were ready and broke
    std::uint64_t disagreements = 0;  ///< times that a store had another meta than expected: `expected_entries`
                                      ///< set differently, or forgotten and set anew
};

/// What a connection begins with: commands, and which of their answers matter.
struct Greeting {
    struct Answer {
        bool required = true;
        bool is_meta = false;
    };

    std::string text;
    std::vector<Answer> answers;

    void add(std::initializer_list<std::string_view> command, Answer answer) {
        append_command(text, command);
        answers.push_back(answer);
    }
};

/// What a connection begins with: who connects, to which database, and the meta of the packed layout, or a PING.
/// `meta` is what is proposed to a server that has none.
[[nodiscard]] inline Greeting greeting_of(const Settings& settings, const Meta& meta) {
    Greeting greeting;
    const Target& target = settings.target;
    if (!target.user.empty()) {
        greeting.add({"AUTH", target.user, target.password}, {});
    } else if (!target.password.empty()) {
        greeting.add({"AUTH", target.password}, {});
    }
    if (target.database != 0) {
        greeting.add({"SELECT", std::to_string(target.database)}, {});
    }
    if (!settings.client_name.empty()) {
        greeting.add({"CLIENT", "SETNAME", settings.client_name}, {.required = false});
    }
    if (!settings.meta_key.empty() && target.kind != Target::Kind::cluster) {  // there, one node has it
        greeting.add({"EVAL", meta_script, "1", settings.meta_key, to_text(meta), meta_lifetime}, {.is_meta = true});
    } else {
        greeting.add({"PING"}, {});  // so that a server that is not well is found out at once
    }
    return greeting;
}

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_SETTINGS_HPP
