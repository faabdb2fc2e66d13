// SPDX-License-Identifier: MIT
// Calls whose script gives back what it was given, so that an answer for another call shows.
#ifndef PENSTOCK_TESTS_SUPPORT_ECHO_HPP
#define PENSTOCK_TESTS_SUPPORT_ECHO_HPP

#include <penstock/redis/call.hpp>
#include <penstock/redis/engine.hpp>
#include <penstock/redis/meta.hpp>
#include <penstock/redis/resp.hpp>
#include <penstock/redis/script.hpp>
#include <penstock/redis/settings.hpp>
#include <penstock/redis/slot.hpp>
#include <penstock/redis/url.hpp>
#include <penstock/store.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace support {

inline const penstock::redis::Script& echo_script() {
    static const penstock::redis::Script script("return tonumber(ARGV[1])");
    return script;
}

class Echo : public penstock::redis::Call {
public:
    explicit Echo(std::int64_t number) : number_(number), key_("key" + std::to_string(number)) {}

    [[nodiscard]] std::string_view key() const noexcept final { return key_; }
    [[nodiscard]] std::uint16_t slot(const penstock::redis::Meta&) const override {
        return penstock::redis::slot_of(key_);
    }
    [[nodiscard]] const penstock::redis::Script& script() const noexcept override { return echo_script(); }

    void write(std::string& out, const penstock::redis::Meta&) const override {
        penstock::redis::append_array_header(out, 5);
        penstock::redis::append_bulk(out, std::string_view("EVALSHA"));
        penstock::redis::append_bulk(out, std::string_view(script().sha1));
        penstock::redis::append_bulk(out, std::string_view("1"));
        penstock::redis::append_bulk(out, std::string_view(key_));
        penstock::redis::append_bulk(out, std::string_view(std::to_string(number_)));
    }

    void finished() noexcept override {}

    /// The answer is this call's own.
    [[nodiscard]] bool answered() const {
        return error() == penstock::StoreError::none && numbers().size() == 1 && numbers()[0] == number_;
    }

    /// It is, or there is none.
    [[nodiscard]] bool right() const { return answered() || error() != penstock::StoreError::none; }

private:
    std::int64_t number_;
    std::string key_;
};

/// How calls that nobody waits for have ended.
struct Tally {
    std::atomic<int> answered{0};
    std::atomic<int> failed{0};
    std::atomic<int> wrong{0};

    [[nodiscard]] int all() const { return answered + failed + wrong; }
};

/// Counts itself in and is gone.
class CountedEcho final : public Echo {
public:
    CountedEcho(std::int64_t number, Tally& tally) : Echo(number), tally_(tally) {}

    void finished() noexcept override {
        ++(answered() ? tally_.answered : right() ? tally_.failed : tally_.wrong);
        delete this;
    }

private:
    Tally& tally_;
};

inline penstock::redis::Settings engine_settings(int port, std::int64_t timeout = 20'000'000) {
    return {.target = penstock::redis::parse_url("redis://127.0.0.1:" + std::to_string(port)), .timeout = timeout};
}

/// Waits for the answer.
inline void ask(penstock::redis::Engine& engine, Echo& echo) {
    penstock::redis::Call* const call = &echo;
    engine.run({&call, 1}, engine.deadline());
}

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_ECHO_HPP
