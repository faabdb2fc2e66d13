// SPDX-License-Identifier: MIT
// Pack: a tuple that is trivially copyable when its elements are, which std::tuple is not.
#ifndef PENSTOCK_DETAIL_PACK_HPP
#define PENSTOCK_DETAIL_PACK_HPP

#include <penstock/config.hpp>

#include <cstddef>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

template <std::size_t Index, class T>
struct PackElement {
    T value;

    friend constexpr bool operator==(const PackElement&, const PackElement&) noexcept = default;
};

template <class Indices, class... Ts>
struct PackOf;

template <std::size_t... Index, class... Ts>
struct PackOf<std::index_sequence<Index...>, Ts...> : PackElement<Index, Ts>... {
    constexpr PackOf() = default;
    explicit constexpr PackOf(const Ts&... values) : PackElement<Index, Ts>{values}... {}

    friend constexpr bool operator==(const PackOf&, const PackOf&) noexcept = default;
};

template <class... Ts>
using Pack = PackOf<std::index_sequence_for<Ts...>, Ts...>;

template <std::size_t Index, class T>
[[nodiscard]] constexpr T& get(PackElement<Index, T>& element) noexcept {
    return element.value;
}

template <std::size_t Index, class T>
[[nodiscard]] constexpr const T& get(const PackElement<Index, T>& element) noexcept {
    return element.value;
}

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_PACK_HPP
