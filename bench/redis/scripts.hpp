// SPDX-License-Identifier: MIT
// What a check costs the server: all sides are sent by the same bare wire, so that only the scripts differ.
#ifndef PENSTOCK_BENCH_REDIS_SCRIPTS_HPP
#define PENSTOCK_BENCH_REDIS_SCRIPTS_HPP

#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/ours.hpp"
#include "../report.hpp"
#include "clients.hpp"
#include "fleet.hpp"
#include "options.hpp"
#include "script.hpp"
#include "server.hpp"
#include "textbook.hpp"
#include "turns.hpp"
#include "wire.hpp"

namespace bench {

using ThreeRules = penstock::AllOf<penstock::TokenBucket, penstock::TokenBucket, penstock::TokenBucket>;

inline constexpr std::uint64_t capacities[] = {
    ample_limit.capacity, 2 * ample_limit.capacity, 4 * ample_limit.capacity};

[[nodiscard]] inline penstock::TokenBucket rule(std::size_t index) {
    return bucket_of({capacities[index], ample_limit.micros_per_unit});
}

/// Clients who are all admitted, by one or several scripts, each of which counts in entries of its own.
class Admitted {
public:
    Admitted(std::string name,
             Server& server,
             const RedisOptions& options,
             std::vector<std::unique_ptr<const Script>> scripts,
             std::vector<std::uint64_t> limits = {ample_limit.capacity})
        : name_{std::move(name)}, server_{server}, owned_{std::move(scripts)}, crowd_{options.clients, 1},
          ledger_{options.clients, std::move(limits)}, wire_{server.port()} {
        for (const auto& script : owned_) {
            server.load(*script);
            scripts_.push_back(script.get());
        }
        (void)measure(crowd_.everybody());
    }

    /// The figures of a client's checks, be they one call or several.
    [[nodiscard]] Figures block(std::size_t calls) { return measure(crowd_.draw(calls / scripts_.size())); }

private:
    Figures measure(const std::vector<std::uint32_t>& clients) {
        const Batch batch{scripts_, clients};
        Meter meter{server_};
        const Tally tally = answers_of(wire_, scripts_, batch);
        const Figures figures = meter.per_check(clients.size());
        ledger_.demand(name_, clients, tally);
        return figures;
    }

    std::string name_;
    Server& server_;
    std::vector<std::unique_ptr<const Script>> owned_;
    std::vector<const Script*> scripts_;
    Crowd crowd_;
    Ledger ledger_;
    Wire wire_;
};

/// Clients who are all rejected. As with most limits, what they used is back within a minute or so: therefore they use
/// it up anew before each block, in a database of their own that is emptied each time.
class Rejected {
public:
    Rejected(Server& server, const RedisOptions& options, penstock::Layout layout, const std::string& database)
        : server_{server}, script_{bucket_of({1, 90'000'000}), layout, meta_for(options.clients)},
          crowd_{options.clients, 2}, wire_{server.port()} {
        server.load(script_);
        command("*2\r\n$6\r\nSELECT\r\n$1\r\n" + database + "\r\n");
    }

    [[nodiscard]] Figures block(std::size_t checks) {
        command("*1\r\n$7\r\nFLUSHDB\r\n");
        const std::vector<std::uint32_t> everybody = crowd_.everybody();
        if (answers_of(wire_, script_, Batch{script_, everybody}).allowed != everybody.size()) {
            throw WrongAnswer{"fresh clients are rejected"};
        }
        const Batch batch{script_, crowd_.draw(checks)};
        Meter meter{server_};
        const Tally tally = answers_of(wire_, script_, batch);
        const Figures figures = meter.per_check(checks);
        if (tally.allowed != 0 || tally.remaining != 0) throw WrongAnswer{"exhausted clients are admitted"};
        return figures;
    }

private:
    void command(const std::string& bytes) {
        wire_.send(bytes);
        wire_.receive([](std::span<const std::int64_t>) {});
    }

    Server& server_;
    OurScript<penstock::TokenBucket> script_;
    Crowd crowd_;
    Wire wire_;
};

using Scripts = std::vector<std::unique_ptr<const Script>>;

template <class... Made>
[[nodiscard]] Scripts scripts_of(std::unique_ptr<Made>... made) {
    Scripts scripts;
    (scripts.push_back(std::move(made)), ...);
    return scripts;
}

/// The sides of one layout.
class LayoutSides {
public:
    LayoutSides(Server& server, const RedisOptions& options, penstock::Layout layout, std::string name, int database)
        : name_{std::move(name)}, admitted_{name_ + ", admitted",
                                            server,
                                            options,
                                            scripts_of(script(0, layout, options.clients, "one"))},
          rejected_{server, options, layout, std::to_string(database)},
          one_call_{name_ + ", 3 rules in a call",
                    server,
                    options,
                    scripts_of(std::make_unique<OurScript<ThreeRules>>(
                        ThreeRules{rule(0), rule(1), rule(2)}, layout, meta_for(options.clients), "all", ""))},
          three_calls_{name_ + ", 3 calls",
                       server,
                       options,
                       scripts_of(script(0, layout, 3 * options.clients, "each", "first"),
                                  script(1, layout, 3 * options.clients, "each", "second"),
                                  script(2, layout, 3 * options.clients, "each", "third")),
                       {capacities[0], capacities[1], capacities[2]}} {}

    void add_to(std::vector<Side>& sides, std::size_t block) {
        sides.push_back({name_ + " admitted", [this, block] { return admitted_.block(block); }});
        sides.push_back({name_ + " rejected", [this, block] { return rejected_.block(block); }});
        sides.push_back({name_ + " in one call", [this, block] { return one_call_.block(block / 2); }});
        sides.push_back({name_ + " in three calls", [this, block] { return three_calls_.block(block); }});
    }

    /// `its` are the figures of the sides that were added.
    void report_to(Report& report, const Figures& textbook, std::span<const Figures> its) const {
        add(report, "server CPU, " + name_ + " / textbook script", its[0], textbook, 0.85);
        add(report, "server CPU, " + name_ + ", rejected / admitted", its[1], its[0], 0.7);
        add(report, "server CPU, " + name_ + ", 3 rules in one call / 3 checks", its[2], its[3], 0.7);
    }

private:
    [[nodiscard]] static std::unique_ptr<OurScript<penstock::TokenBucket>> script(
        std::size_t index, penstock::Layout layout, std::size_t entries, std::string prefix, std::string name = {}) {
        return std::make_unique<OurScript<penstock::TokenBucket>>(
            rule(index), layout, meta_for(entries), std::move(prefix), std::move(name));
    }

    static void add(Report& report, std::string what, const Figures& ours, const Figures& reference, double most) {
        report.add({std::move(what), ours.server, reference.server, Unit::nanoseconds, at_most(most)});
    }

    std::string name_;
    Admitted admitted_;
    Rejected rejected_;
    Admitted one_call_;
    Admitted three_calls_;
};

inline void measure_scripts(Report& report, const RedisOptions& options, Fleet& fleet) {
    Report::progress("scripts: filling");
    Server server;
    Admitted textbook{"textbook", server, options, scripts_of(std::make_unique<Textbook>(ample_limit))};
    LayoutSides packed{server, options, penstock::Layout::packed, "packed", 1};
    LayoutSides per_key{server, options, penstock::Layout::per_key, "per_key", 2};
    std::vector<Side> sides{{"textbook", [&] { return textbook.block(options.block); }}};
    packed.add_to(sides, options.block);
    per_key.add_to(sides, options.block);
    const std::vector<Figures> figures = take_turns("scripts", sides, options.turns);
    packed.report_to(report, figures[0], std::span{figures}.subspan(1, 4));
    per_key.report_to(report, figures[0], std::span{figures}.subspan(5, 4));
    fleet.nanos_per_check = figures[1].server;
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REDIS_SCRIPTS_HPP
