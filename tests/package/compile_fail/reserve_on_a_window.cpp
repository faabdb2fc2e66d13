// SPDX-License-Identifier: MIT
// Windows give nothing in advance.
// says: penstock: reserve needs an algorithm that
#include <penstock/penstock.hpp>

auto serve(penstock::Limiter<penstock::FixedWindow>& limiter) {
    return limiter.reserve("user:42", std::chrono::microseconds{1});
}
