// SPDX-License-Identifier: MIT
// An algorithm whose parameters own memory: a plan of it could not be replaced while it is read.
// says: penstock: an algorithm's parameters must be trivially copyable
#include <penstock/penstock.hpp>

#include <string>

struct Named {
    std::string name;

    struct State {
        bool taken;
    };

    static penstock::Decision step(
        State&, const penstock::Plan<Named>&, penstock::Micros, std::uint64_t, penstock::Micros) noexcept;
};

bool serve(penstock::Limiter<Named>& limiter) {
    return limiter.check("user:42").allowed;
}
