// SPDX-License-Identifier: MIT
// Bare: hiredis as its users use it, for one blocking connection.
#ifndef PENSTOCK_BENCH_REDIS_BARE_HPP
#define PENSTOCK_BENCH_REDIS_BARE_HPP

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <hiredis/hiredis.h>

#include "../report.hpp"
#include "script.hpp"
#include "wire.hpp"

namespace bench {

/// The arguments of a command, as hiredis takes them.
struct Arguments {
    /// Of a command as it goes over the wire, which must stay.
    explicit Arguments(std::string_view command) {
        (void)next_number(command);  // how many
        while (!command.empty()) {
            const std::size_t size = next_number(command);
            texts[count] = command.data();
            sizes[count++] = size;
            command.remove_prefix(size + 2);
        }
    }

    std::array<const char*, 8> texts{};
    std::array<std::size_t, 8> sizes{};
    std::size_t count = 0;

private:
    static std::size_t next_number(std::string_view& rest) {
        std::size_t number = 0;
        const char* const end = std::from_chars(rest.data() + 1, rest.data() + rest.size(), number).ptr;
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 2);
        return number;
    }
};

[[nodiscard]] inline std::vector<Arguments> arguments_of(const Batch& batch) {
    std::vector<Arguments> all;
    all.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
        all.emplace_back(batch.slice(i, i + 1));
    }
    return all;
}

class Bare {
public:
    Bare(int port, const Script& script) : script_{script}, context_{redisConnect("127.0.0.1", port)} {
        if (context_ == nullptr || context_->err != 0) throw std::runtime_error{"hiredis does not connect"};
    }

    [[nodiscard]] Answer check(const Arguments& its) {
        auto [texts, sizes, count] = its;
        return answer(redisCommandArgv(context_.get(), static_cast<int>(count), texts.data(), sizes.data()));
    }

    /// Queues; it is sent when a reply is waited for.
    void add(const Arguments& its) {
        auto [texts, sizes, count] = its;
        redisAppendCommandArgv(context_.get(), static_cast<int>(count), texts.data(), sizes.data());
    }

    [[nodiscard]] Answer next() {
        void* reply = nullptr;
        redisGetReply(context_.get(), &reply);
        return answer(reply);
    }

private:
    struct Free {
        void operator()(redisContext* context) const noexcept { redisFree(context); }
        void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
    };

    [[nodiscard]] Answer answer(void* raw) const {
        const std::unique_ptr<redisReply, Free> reply{static_cast<redisReply*>(raw)};
        if (reply == nullptr || reply->type == REDIS_REPLY_ERROR) {
            throw WrongAnswer{reply == nullptr ? "hiredis gets no answer" : std::string{reply->str, reply->len}};
        }
        Numbers numbers;
        if (reply->type == REDIS_REPLY_INTEGER) numbers.add(reply->integer);
        for (std::size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; ++i) {
            numbers.add(reply->element[i]->integer);
        }
        return script_.answer(numbers.all());
    }

    const Script& script_;
    std::unique_ptr<redisContext, Free> context_;
};

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_BARE_HPP
