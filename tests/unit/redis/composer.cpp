// SPDX-License-Identifier: MIT
#include <penstock/redis/composer.hpp>

#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

using penstock::FixedWindow;
using penstock::SlidingWindow;
using penstock::TokenBucket;
using penstock::detail::LuaTwin;
using penstock::detail::ScriptComposer;
using penstock::redis::Layout;
using penstock::redis::Time;

namespace {

constexpr std::array<LuaTwin, 1> bucket{TokenBucket::Lua::twin};
constexpr std::array<LuaTwin, 3> three{SlidingWindow::Lua::twin, FixedWindow::Lua::twin, TokenBucket::Lua::twin};

bool has(const std::string& text, std::string_view piece) {
    return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("all slots and numbers of parts are filled in, with no blank line left") {
    for (const Layout layout : {Layout::packed, Layout::per_key}) {
        for (const Time time : {Time::server, Time::limiter}) {
            const ScriptComposer composer(three, true, layout, time);
            for (const std::string& text : {composer.check(), composer.others()}) {
                CHECK(text.find_first_of("$@?") == std::string::npos);
                CHECK_FALSE(has(text, "\n\n"));
                CHECK(has(text, "length1"));
                CHECK(has(text, "offset2"));
                CHECK(has(text, "tokens3"));
            }
        }
    }
}

TEST_CASE("the layout decides how a state is read and written") {
    const std::string packed = ScriptComposer(bucket, false, Layout::packed, Time::server).check();
    CHECK(has(packed, "'HGET',KEYS[1],ARGV[1]"));
    CHECK(has(packed, "#old==24 then"));
    CHECK(has(packed, "struct.pack('<BI4I7I4I4I4',slow1,seconds,stamp1,used1,part1,unit1)"));
    CHECK_FALSE(has(packed, "'SET'"));

    const std::string per_key = ScriptComposer(bucket, false, Layout::per_key, Time::server).check();
    CHECK(has(per_key, "'GET',KEYS[1]"));
    CHECK(has(per_key, "#old==20 then"));
    CHECK(has(per_key, "struct.pack('<BI7I4I4I4',slow1,stamp1,used1,part1,unit1)"));
    CHECK_FALSE(has(per_key, "'HSET'"));
}

TEST_CASE("the time is asked for once, or comes with the call") {
    const std::string server = ScriptComposer(bucket, false, Layout::packed, Time::server).check();
    CHECK(has(server, "call('TIME')"));
    CHECK(server.find("'TIME'") == server.rfind("'TIME'"));
    CHECK(has(server, "if need<1 then"));
    const std::string limiter = ScriptComposer(bucket, false, Layout::packed, Time::limiter).check();
    CHECK_FALSE(has(limiter, "'TIME'"));
    CHECK(has(limiter, "if need<3600000 then"));
}

TEST_CASE("three limits of any kind fit into the entries that Redis packs") {
    const std::string text = ScriptComposer(three, true, Layout::packed, Time::server).check();
    CHECK(has(text, "#old==57 then"));  // up to 64 bytes
}

TEST_CASE("only buckets are reserved in advance, and only a joined reply tells the limit") {
    CHECK(has(ScriptComposer(bucket, false, Layout::packed, Time::server).others(), "if op==4 and"));
    const std::string joined = ScriptComposer(three, true, Layout::packed, Time::server).others();
    CHECK_FALSE(has(joined, "if op==4 and"));
    CHECK(has(joined, "return {verdict,left,reset,limit}"));
}
