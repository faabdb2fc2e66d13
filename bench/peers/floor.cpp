// SPDX-License-Identifier: MIT
// The floor: the least a check can do. Hash, read the clock, update one cache line in the same amount of memory.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

#include <sys/mman.h>

#include "hash.hpp"
#include "loops.hpp"
#include "peer.hpp"
#include "token_bucket.hpp"

namespace bench {
namespace {

struct alignas(64) Line {
    std::atomic<std::uint64_t> count{0};
};

class Floor {
public:
    explicit Floor(const Setup& setup) : size_{setup.bytes / sizeof(Line)}, lines_{allocate(size_)} {
        std::uninitialized_default_construct_n(lines_.get(), size_);
    }

    Answer check(std::string_view key) {
        Line& line = lines_.get()[multiply_high(hash_key(key), size_)];
        const std::int64_t now = steady_micros();
        return {.allowed = true, .remaining = line.count.fetch_add(1, std::memory_order_relaxed), .retry_after = now};
    }

    Answer check_at(std::string_view key, std::uint64_t /*cost*/, std::int64_t /*now*/) { return check(key); }

    [[nodiscard]] std::size_t live(std::size_t /*clients*/) const { return size_; }

private:
    static Line* allocate(std::size_t lines) {
        constexpr std::size_t page = std::size_t{2} << 20U;
        const std::size_t bytes = (lines * sizeof(Line) + page - 1) / page * page;
        void* memory = std::aligned_alloc(page, bytes);
        if (memory == nullptr) throw std::bad_alloc{};
        madvise(memory, bytes, MADV_HUGEPAGE);
        return static_cast<Line*>(memory);
    }

    struct Free {
        void operator()(Line* lines) const noexcept { std::free(lines); }
    };

    std::size_t size_;
    std::unique_ptr<Line, Free> lines_;
};

}  // namespace

const Peer floor_peer = make_peer<Floor>("floor");

}  // namespace bench
