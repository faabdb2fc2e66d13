// SPDX-License-Identifier: MIT
// Zeroed memory from the system.
#include <penstock/detail/pages.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

namespace {

using penstock::detail::Pages;

std::size_t misaligned(const Pages& pages, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(pages.data()) % alignment;
}

TEST_CASE("memory is zeroed, writable and aligned to cache lines") {
    constexpr std::size_t size = 100'000;
    const Pages pages(size);
    CHECK(misaligned(pages, 64) == 0);
    CHECK(std::all_of(pages.data(), pages.data() + size, [](std::byte byte) { return byte == std::byte{0}; }));
    pages.data()[size - 1] = std::byte{1};
    CHECK(pages.data()[size - 1] == std::byte{1});
}

TEST_CASE("a large table begins at a large page") {
    CHECK(misaligned(Pages(std::size_t{3} << 20), std::size_t{2} << 20) == 0);
}

TEST_CASE("memory that was backed at once is zeroed all the same") {
    constexpr std::size_t size = std::size_t{3} << 20;
    const Pages pages(size, true);
    CHECK(std::all_of(pages.data(), pages.data() + size, [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_CASE("more than there is address space for is refused") {
    CHECK_THROWS_AS(Pages(std::size_t{1} << 62), std::bad_alloc);
    CHECK_THROWS_AS(Pages(~std::uint64_t{0}), std::bad_alloc);
}

}  // namespace
