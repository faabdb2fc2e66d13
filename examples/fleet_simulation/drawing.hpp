// SPDX-License-Identifier: MIT
// Draws what a fleet's leases saved and cost, as SVG; nothing here is about the library.
#ifndef PENSTOCK_EXAMPLES_FLEET_SIMULATION_DRAWING_HPP
#define PENSTOCK_EXAMPLES_FLEET_SIMULATION_DRAWING_HPP

#include "../picture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace drawing {

/// What came of leases of one size.
struct Result {
    std::uint64_t size = 0;
    std::uint64_t checks = 0;
    std::uint64_t passed = 0;
    std::uint64_t commands = 0;   // of the store
    std::uint64_t overshoot = 0;  // the most that was above the limit
    std::uint64_t bound = 0;      // the most that may be
    std::uint64_t checks_in_outages = 0;
    std::uint64_t passed_in_outages = 0;
};

/// "0.994"
inline std::string ratio(std::uint64_t part, std::uint64_t whole) {
    const std::uint64_t thousandths = (part * 1000 + whole / 2) / whole;
    const std::string digits = std::to_string(thousandths % 1000);
    return std::to_string(thousandths / 1000) + "." + std::string(3 - digits.size(), '0') + digits;
}

// The picture: a row for each size, store commands to the left, overshoot to the right.
class Svg {
public:
    Svg(std::ostream& out, std::string_view title, const std::vector<Result>& results)
        : title_(title), results_(results),
          picture_(out, width, top + static_cast<int>(results.size()) * pitch + 24, title, style) {}

    void write(std::string_view subtitle) {
        picture_.text("title", left, 38, title_);
        picture_.text("", left, 60, subtitle);
        picture_.text("end name", left - 12, top - 16, "units");
        picture_.text("name", left, top - 16, "store commands per check");
        picture_.text("name", middle, top - 16, "units above the limit, and at most");
        int row = 0;
        for (const Result& result : results_) {
            draw(result, top + pitch * row++);
        }
    }

private:
    static constexpr int left = 78, length = 330, middle = 500, width = 960, top = 116, pitch = 34, bar = 20;
    static constexpr std::string_view style = R"(.commands { fill: #2a7fb8 }
.overshoot { fill: #e8893c }
.bound { fill: #e8893c; fill-opacity: 0.25 }
)";

    void draw(const Result& result, int y) {
        const std::uint64_t widest = (std::max)(results_.back().bound, std::uint64_t{1});
        picture_.text("end", left - 12, y + 15, std::to_string(result.size));
        const int commands = scaled(result.commands, result.checks);
        picture_.rect("commands", left, y, commands, bar);
        picture_.text("", left + commands + 8, y + 15, ratio(result.commands, result.checks));
        const int bound = scaled(result.bound, widest);
        picture_.rect("bound", middle, y, bound, bar);
        picture_.rect("overshoot", middle, y, scaled(result.overshoot, widest), bar);
        picture_.text(
            "", middle + bound + 8, y + 15, std::to_string(result.overshoot) + " of " + std::to_string(result.bound));
    }

    [[nodiscard]] static int scaled(std::uint64_t part, std::uint64_t whole) {
        return static_cast<int>(part * static_cast<std::uint64_t>(length) / whole);
    }

    std::string_view title_;
    const std::vector<Result>& results_;
    support::Picture picture_;
};

}  // namespace drawing

#endif  // PENSTOCK_EXAMPLES_FLEET_SIMULATION_DRAWING_HPP
