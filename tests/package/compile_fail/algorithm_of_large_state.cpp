// SPDX-License-Identifier: MIT
// An algorithm that remembers more of a client than a slot has room for.
// says: penstock: an algorithm's State must be at most 120 bytes
#include <penstock/penstock.hpp>

struct Log {
    struct State {
        std::uint64_t times[16];
    };

    static penstock::Decision step(
        State&, const penstock::Plan<Log>&, penstock::Micros, std::uint64_t, penstock::Micros) noexcept;
};

bool serve(penstock::Limiter<Log>& limiter) {
    return limiter.check("user:42").allowed;
}
