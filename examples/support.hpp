// SPDX-License-Identifier: MIT
// How the examples write what they print; nothing here is about the library.
#ifndef PENSTOCK_EXAMPLES_SUPPORT_HPP
#define PENSTOCK_EXAMPLES_SUPPORT_HPP

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace support {

inline std::string text(std::string_view any) {
    return std::string(any);
}

inline std::string text(std::same_as<bool> auto yes) {
    return yes ? "yes" : "no";
}

inline std::string text(std::unsigned_integral auto number) requires(!std::same_as<decltype(number), bool>) {
    return std::to_string(number);
}

/// "500 ms", "3598 s": in the largest of us, ms and, from ten on, s that needs no fraction.
inline std::string text(std::chrono::microseconds time) {
    const auto us = time.count();
    if (us % 1000 != 0) return std::to_string(us) + " us";
    if (us % 1'000'000 != 0 || us < 10'000'000) return std::to_string(us / 1000) + " ms";
    return std::to_string(us / 1'000'000) + " s";
}

/// A table whose columns are as wide as their headings: to the right, or, where the heading ends in a space, to the
/// left.
class Table {
public:
    Table(std::initializer_list<std::string> headings) : headings_(headings) { print(headings_); }

    template <class... Cells>
    void row(const Cells&... cells) const {
        print({text(cells)...});
    }

private:
    void print(const std::vector<std::string>& cells) const {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const bool left = headings_[i].back() == ' ';
            const std::size_t width = headings_[i].size();
            const std::string padding(width > cells[i].size() ? width - cells[i].size() : 0, ' ');
            line += (i == 0 ? "" : "  ") + (left ? cells[i] + padding : padding + cells[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        std::puts(line.c_str());
    }

    std::vector<std::string> headings_;
};

}  // namespace support

#endif  // PENSTOCK_EXAMPLES_SUPPORT_HPP
