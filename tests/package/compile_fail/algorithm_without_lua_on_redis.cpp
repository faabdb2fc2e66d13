// SPDX-License-Identifier: MIT
// An algorithm of the user's own, over a store that runs Lua.
// says: penstock: RedisStorage needs an algorithm that has its steps in Lua, too
#include <penstock/penstock_redis.hpp>

struct Always {
    struct State {
        std::uint64_t nothing;
    };

    static penstock::Decision step(
        State&, const penstock::Plan<Always>&, penstock::Micros, std::uint64_t, penstock::Micros) noexcept {
        return {.allowed = true};
    }
};

bool serve(penstock::Limiter<Always, penstock::RedisStorage>& limiter) {
    return limiter.check("user:42").allowed;
}
