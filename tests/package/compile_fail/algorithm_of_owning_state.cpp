// SPDX-License-Identifier: MIT
// An algorithm whose state owns memory: it cannot be copied as bytes.
// says: penstock: an algorithm's State must be trivially copyable
#include <penstock/penstock.hpp>

#include <string>

struct Log {
    struct State {
        std::string times;
    };

    static penstock::Decision step(
        State&, const penstock::Plan<Log>&, penstock::Micros, std::uint64_t, penstock::Micros) noexcept;
};

bool serve(penstock::Limiter<Log>& limiter) {
    return limiter.check("user:42").allowed;
}
