// SPDX-License-Identifier: MIT
// LuaTwin: an algorithm's steps once more, as pieces of Lua that a storage puts together into a script.
#ifndef PENSTOCK_DETAIL_LUA_HPP
#define PENSTOCK_DETAIL_LUA_HPP

#include <penstock/config.hpp>

#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// The pieces. `@` stands for the number of the part, so that the parts of AllOf do not mix up their variables. Numbers
/// are doubles: products are exact below 2^53, and where they may pass that `divide(a, b, c)` is there, which gives the
/// exact quotient and remainder of a * b / c. Waits leave out `lag@`, how far the clock stands before the stamp: the
/// sum of both may pass 2^53.
struct LuaTwin {
    std::string_view name;     ///< of the algorithm, as it stands in keys
    std::string_view state;    ///< variables that are stored. The first is one byte that tells the algorithm, below 192
    std::string_view narrow;   ///< how struct.pack writes them
    std::string_view wide;     ///< and how where they do not fit
    std::string_view fits;     ///< whether narrow holds them
    std::string_view foreign;  ///< whether what was read cannot be ours
    std::string_view plan;     ///< variables for the numbers of the plan; one is limit@
    std::string_view large;    ///< whether products may pass 2^53
    std::string_view advance;  ///< brings the state from its stamp to `now`; ok@, lack@, retry@ = true, 0, 0
    std::string_view check;    ///< takes `cost`, or ok@ = false and what lack@ or retry@ (1/0: never) must tell `wait`
    std::string_view refund;   ///< gives `cost` back; did@ = true if there is something to give
    std::string_view charge;   ///< takes `cost` even past the limit
    std::string_view wait;     ///< retry@ of what was not allowed
    std::string_view patient;  ///< whether a rejected cost may be taken in advance; empty: never
    std::string_view take;     ///< takes it
    std::string_view answer;   ///< left@ and reset@
    std::string_view fresh;    ///< when the state is as good as fresh
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_LUA_HPP
