// SPDX-License-Identifier: MIT
// Pages: zeroed memory straight from the system, in large pages where it has them.
#ifndef PENSTOCK_DETAIL_PAGES_HPP
#define PENSTOCK_DETAIL_PAGES_HPP

#include <penstock/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

#if __has_include(<sys/mman.h>)
#define PENSTOCK_MMAP 1
#include <sys/mman.h>
#else
#define PENSTOCK_MMAP 0
#endif

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Owns zeroed memory. A page is backed when it is first touched, so a large table costs what is used of it.
class Pages {
public:
    /// Throws std::bad_alloc if the system refuses; without exceptions the process aborts. With `prefault` all pages
    /// are touched at once.
    explicit Pages(std::uint64_t bytes, bool prefault = false)
        : size_(size_for(bytes)), begin_(size_ == 0 ? nullptr : map(size_)) {
        if (begin_ == nullptr) {
#if PENSTOCK_EXCEPTIONS
            throw std::bad_alloc();
#else
            std::abort();
#endif
        }
        const std::uintptr_t mask = alignment(bytes) - 1;
        data_ = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(begin_) + mask) & ~mask);
#if PENSTOCK_MMAP && PENSTOCK_HUGE_PAGES && defined(MADV_HUGEPAGE)
        if (alignment(bytes) == large_page) {
            madvise(
                data_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a wish: without it all works, only slower
        }
#endif
        for (std::size_t touched = 0; prefault && touched < bytes; touched += small_page) {
            static_cast<volatile std::byte*>(data_)[touched] = std::byte{0};
        }
    }

    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    ~Pages() {
#if PENSTOCK_MMAP
        munmap(begin_, size_);
#else
        std::free(begin_);
#endif
    }

    [[nodiscard]] std::byte* data() const noexcept {
        return data_;
    }

private:
    static constexpr std::size_t large_page = std::size_t{2} << 20;
    static constexpr std::size_t small_page = 4096;
    static constexpr std::size_t cache_line = 64;

    /// With room to align it; 0 if no system has that much.
    [[nodiscard]] static constexpr std::size_t size_for(std::uint64_t bytes) noexcept {
        constexpr std::uint64_t most = (std::numeric_limits<std::size_t>::max)() / 2;
        return bytes > most ? 0 : static_cast<std::size_t>(bytes) + alignment(bytes);
    }

    [[nodiscard]] static constexpr std::size_t alignment(std::uint64_t bytes) noexcept {
        return bytes >= large_page ? large_page : cache_line;
    }

    [[nodiscard]] static void* map(std::size_t size) noexcept {
#if PENSTOCK_MMAP
        void* const begin = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return begin == MAP_FAILED ? nullptr : begin;
#else
        return std::calloc(size, 1);
#endif
    }

    std::size_t size_;
    void* begin_;
    std::byte* data_ = nullptr;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_PAGES_HPP
