// SPDX-License-Identifier: MIT
// What a team would write instead: a token bucket as a hash of two floats for each client.
#ifndef PENSTOCK_BENCH_REDIS_TEXTBOOK_HPP
#define PENSTOCK_BENCH_REDIS_TEXTBOOK_HPP

#include <penstock/redis/resp.hpp>
#include <penstock/redis/sha1.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "../peers/peer.hpp"
#include "../report.hpp"
#include "script.hpp"

namespace bench {

class Textbook final : public Script {
public:
    explicit Textbook(const Limit& limit)
        : sha1_{penstock::redis::sha1(text_)}, capacity_{std::to_string(limit.capacity)}, micros_{std::to_string(
                                                                                              limit.micros_per_unit)} {}

    [[nodiscard]] const std::string& text() const override { return text_; }

    void append(std::string& out, std::string_view client, std::uint64_t cost) const override {
        using penstock::redis::append_bulk;
        penstock::redis::append_array_header(out, 8);
        append_bulk(out, std::string_view{"EVALSHA"});
        append_bulk(out, std::string_view{sha1_});
        append_bulk(out, std::string_view{"1"});
        append_bulk(out, std::string_view{"rl:" + std::string{client}});
        append_bulk(out, std::string_view{capacity_});
        append_bulk(out, std::string_view{"1"});
        append_bulk(out, std::string_view{micros_});
        append_bulk(out, cost);
    }

    [[nodiscard]] Answer answer(std::span<const std::int64_t> reply) const override {
        if (reply.size() != 3) throw WrongAnswer{"a reply of the textbook script is none"};
        return {.allowed = reply[0] == 1, .remaining = static_cast<std::uint64_t>(reply[1]), .retry_after = reply[2]};
    }

private:
    // Tokens come at ARGV[2] in ARGV[3] microseconds.
    const std::string text_ = R"lua(
local capacity = tonumber(ARGV[1])
local rate = tonumber(ARGV[2]) / tonumber(ARGV[3])
local cost = tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(bucket[1]) or capacity
local at = tonumber(bucket[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)

local allowed, wait = 0, 0
if tokens >= cost then
    allowed = 1
    tokens = tokens - cost
else
    wait = math.ceil((cost - tokens) / rate)
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate / 1000))
return {allowed, math.floor(tokens), wait}
)lua";
    std::string sha1_;
    std::string capacity_;
    std::string micros_;
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_TEXTBOOK_HPP
