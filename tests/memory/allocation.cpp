// SPDX-License-Identifier: MIT
// After construction a limiter allocates nothing and starts no thread, whatever keys are invented.
#include "../support/invented_key.hpp"

#include <penstock/penstock.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <new>
#include <vector>

namespace {

std::atomic<std::uint64_t> allocations{0};

void* allocate(std::size_t size, std::size_t alignment) {
    ++allocations;
    const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
    if (void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)) {
        return memory;
    }
    throw std::bad_alloc();
}

}  // namespace

// Not inlined: g++ would warn that what `new` gave is freed.

[[gnu::noinline]] void* operator new(std::size_t size) {
    return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}

[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocate(size, static_cast<std::size_t>(alignment));
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

namespace {

using namespace std::chrono_literals;
using penstock::Align;
using penstock::AllOf;
using penstock::Check;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Limiter;
using penstock::LocalStorage;
using penstock::per_second;
using penstock::SlidingWindow;
using penstock::TokenBucket;

constexpr std::uint64_t checks = 1'000'000;
const LocalStorage small{{.max_keys = 10'000, .seed = 1}};

/// How many threads this process has; 0 where the system does not tell.
std::ptrdiff_t threads() {
    const std::filesystem::path tasks = "/proc/self/task";
    return std::filesystem::exists(tasks) ? std::distance(std::filesystem::directory_iterator(tasks), {}) : 0;
}

template <class Work>
void check_that_nothing_is_allocated(const Work& work) {
    const std::ptrdiff_t threads_before = threads();
    const std::uint64_t allocations_before = allocations;
    work();
    const std::uint64_t allocations_after = allocations;
    CHECK(allocations_after == allocations_before);
    CHECK(threads() == threads_before);
}

TEST_CASE("allocations are counted") {
    const std::uint64_t before = allocations;
    ::operator delete(::operator new(1));  // called like functions, so that no compiler leaves them out
    CHECK(allocations == before + 1);
}

TEST_CASE("invented keys allocate nothing") {
    Limiter limiter{TokenBucket{.capacity = 10, .refill = per_second(10)}, small};
    std::uint64_t allowed = 0;
    check_that_nothing_is_allocated([&] {
        for (std::uint64_t number = 0; number < checks; ++number) {
            allowed += limiter.check(InventedKey(number)).allowed ? 1 : 0;
        }
    });
    CHECK(allowed == checks);
}

TEST_CASE("invented keys in batches allocate nothing") {
    Limiter limiter{AllOf{SlidingWindow{.limit = 10, .window = 1s, .align = Align::staggered},
                          FixedWindow{.limit = 10, .window = 1min}},
                    small};
    constexpr std::size_t size = 50;
    std::vector<InventedKey> keys(size, InventedKey(0));
    std::vector<Check> batch(size);
    std::vector<Decision> decisions(size);
    std::uint64_t allowed = 0;
    check_that_nothing_is_allocated([&] {
        for (std::uint64_t number = 0; number < checks; ++number) {
            const std::size_t place = number % size;
            keys[place] = InventedKey(number);
            batch[place].key = keys[place];
            if (place + 1 == size) {
                limiter.check(batch, decisions);
                for (const Decision& decision : decisions) {
                    allowed += decision.allowed ? 1 : 0;
                }
            }
        }
    });
    CHECK(allowed == checks);
}

TEST_CASE("no member allocates") {
    constexpr TokenBucket bucket{.capacity = 10, .refill = per_second(10)};
    Limiter limiter{bucket, small};
    const auto plan = penstock::plan(TokenBucket{.capacity = 5, .refill = per_second(1)});
    check_that_nothing_is_allocated([&] {
        for (std::uint64_t number = 0; number < checks / 10; ++number) {
            const InventedKey key(number);
            (void)limiter.peek(key);
            (void)limiter.check(key, plan, 3);
            (void)limiter.check(key, plan, 3);
            (void)limiter.charge(key, 10);
            (void)limiter.refund(key, plan, 1);
            (void)limiter.reserve(key, 1ms);
            (void)limiter.wait_for(key, 0us);
            limiter.configure(limiter.algorithm());
            if (number % 2 == 0) {
                limiter.reset(key);
            }
        }
    });
}

}  // namespace
