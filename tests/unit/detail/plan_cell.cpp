// SPDX-License-Identifier: MIT
// A plan that is replaced while other threads read it.
#include <penstock/detail/plan_cell.hpp>

#include "../../support/threads.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using penstock::detail::PlanCell;

/// All parts are equal in every plan that was ever stored.
struct Parts {
    std::array<std::uint64_t, 9> parts;
    std::uint32_t last;
};

Parts parts(std::uint32_t value) {
    Parts plan{};
    plan.parts.fill(value);
    plan.last = value;
    return plan;
}

bool whole(const Parts& plan) {
    for (const std::uint64_t part : plan.parts) {
        if (part != plan.last) {
            return false;
        }
    }
    return true;
}

TEST_CASE("what was stored last is read") {
    PlanCell<Parts> cell(parts(1));
    CHECK(cell.load().plan().last == 1);
    cell.store(parts(2));
    CHECK(cell.load().plan().last == 2);
    CHECK(whole(cell.load().plan()));
}

TEST_CASE("readers see the old plan or the new one, never a mix") {
    PlanCell<Parts> cell(parts(0));
    constexpr std::uint32_t writes = 20'000;
    threads::together(4, [&](std::size_t thread) {
        std::uint64_t torn = 0;
        for (std::uint32_t i = 0; i < writes; ++i) {
            if (thread < 2) {
                cell.store(parts(i));
            } else {
                torn += whole(cell.load().plan()) ? 0U : 1U;
            }
        }
        CHECK(torn == 0);
    });
}

}  // namespace
