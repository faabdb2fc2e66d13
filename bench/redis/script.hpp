// SPDX-License-Identifier: MIT
// A script as those see it who call it over a bare connection: the commands that go out, and what the numbers that come
// back mean. Ours are the very commands that the library sends.
#ifndef PENSTOCK_BENCH_REDIS_SCRIPT_HPP
#define PENSTOCK_BENCH_REDIS_SCRIPT_HPP

#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "../core/ours.hpp"
#include "../peers/peer.hpp"
#include "../report.hpp"

namespace bench {

class Script {
public:
    Script() = default;
    Script(const Script&) = delete;
    Script& operator=(const Script&) = delete;
    virtual ~Script() = default;

    [[nodiscard]] virtual const std::string& text() const = 0;

    /// Appends the EVALSHA of a check.
    virtual void append(std::string& out, std::string_view client, std::uint64_t cost) const = 0;

    [[nodiscard]] virtual Answer answer(std::span<const std::int64_t> reply) const = 0;
};

template <class Algorithm>
class OurScript final : public Script {
public:
    OurScript(const Algorithm& algorithm,
              penstock::Layout layout,
              const penstock::redis::Meta& meta,
              std::string prefix = "penstock",
              std::string name = {})
        : plan_(algorithm), meta_(meta), context_(layout, std::move(prefix), std::move(name)) {}

    [[nodiscard]] const std::string& text() const override {
        return context_.script(penstock::Op::check, penstock::store_time).text;
    }

    void append(std::string& out, std::string_view client, std::uint64_t cost) const override {
        context_.write(out, meta_, penstock::Op::check, client, plan_, penstock::store_time, cost, {});
    }

    [[nodiscard]] Answer answer(std::span<const std::int64_t> reply) const override {
        using Scripts = penstock::redis::Scripts<Algorithm>;
        penstock::Decision decision;
        if (!Scripts::decision(reply, penstock::Op::check, Scripts::limit_of(plan_), decision)) {
            throw WrongAnswer{"a reply of our script is none"};
        }
        return answer_of(decision);
    }

private:
    penstock::Plan<Algorithm> plan_;
    penstock::redis::Meta meta_;
    penstock::redis::Context<Algorithm> context_;
};

/// For so many clients, as a storage that is told their number decides it.
[[nodiscard]] inline penstock::redis::Meta meta_for(std::size_t entries) {
    return {.buckets = penstock::redis::bucket_count(entries), .secret = 0x70656e73746f636b};
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_SCRIPT_HPP
