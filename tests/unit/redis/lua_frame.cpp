// SPDX-License-Identifier: MIT
#include <penstock/redis/lua_frame.hpp>

#include <doctest/doctest.h>

#include <string_view>

using penstock::detail::LuaFrame;

TEST_CASE("what is written has its lifetime set in the same script") {
    CHECK(LuaFrame::set.find("'PX',need") != std::string_view::npos);
    CHECK(LuaFrame::put_packed.find("'PEXPIRE',KEYS[1]") != std::string_view::npos);
}
