// SPDX-License-Identifier: MIT
// Built without exceptions: a limiter works, and an invalid plan is told to the handler before the process aborts.
#include <penstock/penstock.hpp>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

bool told = false;

void handler(const char* text) {
    told = std::strcmp(text, "TokenBucket.capacity is 0: allowed is 1 to 549755813888") == 0;
}

}  // namespace

int main() {
    penstock::Limiter limiter{penstock::TokenBucket{.capacity = 1, .refill = penstock::per_hour(1)}};
    if (!limiter.check("user:42") || limiter.check("user:42")) return 1;

    if (penstock::on_configuration_error(handler) != nullptr) return 2;
    if (penstock::on_configuration_error(handler) != &handler) return 3;

    std::signal(SIGABRT, [](int) { std::_Exit(told ? 0 : 4); });
    static_cast<void>(penstock::plan(penstock::TokenBucket{.capacity = 0, .refill = penstock::per_hour(1)}));
    return 5;
}
