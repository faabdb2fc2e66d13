// SPDX-License-Identifier: MIT
// Draws what passed over time, in the terminal and as SVG; nothing here is about the library.
#ifndef PENSTOCK_EXAMPLES_COMPARE_ALGORITHMS_DRAWING_HPP
#define PENSTOCK_EXAMPLES_COMPARE_ALGORITHMS_DRAWING_HPP

#include "../picture.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace drawing {

inline constexpr std::chrono::microseconds slice{100'000};
inline constexpr std::size_t slices = 68;
inline constexpr std::size_t slices_per_second = 10;
inline constexpr std::size_t highest = 8;  // requests in a slice

using Counts = std::array<std::size_t, slices>;

struct Phase {
    std::size_t begin, end;  // slices
    std::size_t requests;    // in each of them
    std::string_view name;
};

/// What passed in each slice, in all, and at most within any second.
struct Track {
    std::string name;
    Counts counts{};
    std::size_t total = 0;
    std::size_t in_a_second = 0;
};

struct Timeline {
    std::string title;
    std::vector<Phase> phases;
    Track requests;  // all, passed or not
    std::vector<Track> tracks;
};

inline std::string summary(const Track& track, const Track& requests) {
    return std::to_string(track.total) + " of " + std::to_string(requests.total) + " allowed, at most " +
           std::to_string(track.in_a_second) + " in a second";
}

inline Counts difference(Counts counts, const Counts& subtracted) {
    for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] -= subtracted[i];
    return counts;
}

// The terminal: a column for each slice, an eighth of a block for each request.

inline void print_row(std::string_view label, std::string columns) {
    columns.erase(columns.find_last_not_of(' ') + 1);
    std::printf("%-9s%s\n", std::string(label).c_str(), columns.c_str());
}

inline void print_counts(std::string_view label, const Counts& counts) {
    constexpr std::array<std::string_view, highest + 1> blocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::string columns;
    for (const std::size_t count : counts)
        columns += blocks[count];
    print_row(label, columns);
}

inline void print(const Timeline& timeline) {
    std::string names(slices, ' ');
    for (const Phase& phase : timeline.phases) {
        const std::size_t middle = (phase.begin + phase.end) / 2;
        const std::size_t half = phase.name.size() / 2;
        const std::size_t begin = (std::min)(middle > half ? middle - half : 0, slices - phase.name.size());
        names.replace(begin, phase.name.size(), phase.name);
    }
    std::string seconds(slices, ' ');
    for (std::size_t i = 0; i < slices; i += slices_per_second) {
        seconds.replace(i, 3, std::to_string(i / slices_per_second) + " s");
    }

    std::printf("%s.\n", timeline.title.c_str());
    std::puts("A column is 100 ms, an eighth of its height one request.\n");
    print_row("", names);
    print_counts("requests", timeline.requests.counts);
    print_row("", seconds);
    for (const Track& track : timeline.tracks) {
        std::printf("\n%s\n%s\n", track.name.c_str(), summary(track, timeline.requests).c_str());
        print_counts("allowed", track.counts);
        print_counts("rejected", difference(timeline.requests.counts, track.counts));
    }
    std::puts("");
    print_row("", seconds);
}

// The picture: a panel for each track, rejected on top of allowed.

class Svg {
public:
    Svg(std::ostream& out, const Timeline& timeline)
        : timeline_(timeline), picture_(out, width, height_of(timeline), timeline.title, style) {}

    void write() {
        picture_.text("title", left, 38, timeline_.title);
        picture_.text(
            "", left, 60, "The same traffic through each algorithm: requests per 100 ms. Windows meet at the lines.");
        picture_.rect("allowed", right - 160, 50, 12, 12);
        picture_.text("", right - 142, 60, "allowed");
        picture_.rect("rejected", right - 78, 50, 12, 12);
        picture_.text("", right - 60, 60, "rejected");
        for (const Phase& phase : timeline_.phases) {
            picture_.text("middle", (x(phase.begin) + x(phase.end)) / 2, top - 14, phase.name);
        }
        panel(0, "All requests", "");
        bars("requests", 0, timeline_.requests.counts, {});
        int row = 0;
        for (const Track& track : timeline_.tracks) {
            panel(++row, track.name, summary(track, timeline_.requests));
            bars("allowed", row, track.counts, {});
            bars("rejected", row, difference(timeline_.requests.counts, track.counts), track.counts);
        }
        for (std::size_t i = 0; i < slices; i += slices_per_second) {
            picture_.text(
                "middle quiet", x(i), height_of(timeline_) - 18, std::to_string(i / slices_per_second) + " s");
        }
    }

private:
    static constexpr int column = 13, left = 64, right = left + column * static_cast<int>(slices), width = right + 35;
    static constexpr int top = 114, pitch = 100, panel_height = 56, unit = panel_height / static_cast<int>(highest);
    static constexpr std::string_view style = R"(.line { fill: #8c959f; fill-opacity: 0.6 }
.requests { fill: #8c959f }
.allowed { fill: #2a7fb8 }
.rejected { fill: #e8893c }
)";

    [[nodiscard]] static int height_of(const Timeline& timeline) {
        return top + (static_cast<int>(timeline.tracks.size()) + 1) * pitch + 24;
    }

    [[nodiscard]] static int x(std::size_t i) { return left + static_cast<int>(i) * column; }
    [[nodiscard]] static int baseline(int row) { return top + row * pitch + panel_height + 18; }

    void panel(int row, std::string_view name, std::string_view what) {
        const int base = baseline(row);
        picture_.text("name", left, base - panel_height - 8, name);
        picture_.text("end quiet", right, base - panel_height - 8, what);
        picture_.text("end quiet", left - 8, base, "0");
        picture_.text("end quiet", left - 8, base - panel_height + 10, std::to_string(highest));
        picture_.rect("line", left, base, right - left, 1);
        for (std::size_t i = 0; i < slices; i += slices_per_second) {
            picture_.rect("line", x(i), base - panel_height, 1, panel_height);
        }
    }

    void bars(std::string_view kind, int row, const Counts& counts, const Counts& below) {
        for (std::size_t i = 0; i < slices; ++i) {
            if (counts[i] == 0) continue;
            const int bottom = baseline(row) - static_cast<int>(below[i]) * unit;
            const int size = static_cast<int>(counts[i]) * unit;
            picture_.rect(kind, x(i) + 2, bottom - size, column - 2, size);
        }
    }

    const Timeline& timeline_;
    support::Picture picture_;
};

inline void write_svg(std::ostream& out, const Timeline& timeline) {
    Svg(out, timeline).write();
}

}  // namespace drawing

#endif  // PENSTOCK_EXAMPLES_COMPARE_ALGORITHMS_DRAWING_HPP
