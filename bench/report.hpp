// SPDX-License-Identifier: MIT
// What a benchmark prints: what it ran on, a line per claim, progress on a terminal; and the same figures as JSON.
#ifndef PENSTOCK_BENCH_REPORT_HPP
#define PENSTOCK_BENCH_REPORT_HPP

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "machine.hpp"

namespace bench {

/// Ours and the reference disagree, or a run did not do what it was timed for: its figures mean nothing.
struct WrongAnswer : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Unit { nanoseconds, millions_per_second, bytes, seconds, thousands_per_second, commands };

/// What the ratio of ours to the reference should be; without a bound the line only informs.
struct Goal {
    enum class Kind { none, at_most, at_least } kind = Kind::none;
    double bound = 0;

    [[nodiscard]] bool met(double ratio) const noexcept {
        return kind == Kind::none || (kind == Kind::at_most ? ratio <= bound : ratio >= bound);
    }
};

[[nodiscard]] inline Goal at_most(double bound) {
    return {Goal::Kind::at_most, bound};
}
[[nodiscard]] inline Goal at_least(double bound) {
    return {Goal::Kind::at_least, bound};
}

struct Line {
    std::string name;
    double ours;
    double reference;
    Unit unit;
    Goal goal{};
    double ratio = ours / reference;
};

[[nodiscard]] inline std::string number(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

[[nodiscard]] inline std::string in_unit(double value, Unit unit) {
    if (unit == Unit::millions_per_second) return number("%.1f M/s", value);
    if (unit == Unit::bytes) return number("%.1f B", value);
    if (unit == Unit::seconds) return number("%.3f s", value);
    if (unit == Unit::thousands_per_second) return number("%.1f k/s", value);
    if (unit == Unit::commands) return number("%.0f", value);
    if (value < 1e3) return number("%.1f ns", value);
    return value < 1e6 ? number("%.1f us", value / 1e3) : number("%.2f ms", value / 1e6);
}

class Report {
public:
    explicit Report(std::string_view program) : machine_{describe_machine(program)} {
        for (const auto& [what, text] : machine_) {
            std::printf("%-9s %s\n", what.c_str(), text.c_str());
        }
        print_row({"name", "ours", "reference", "ratio", "goal", ""});
    }

    void add(const Line& line) {
        progress("");
        lines_.push_back(line);
        const bool goal = line.goal.kind != Goal::Kind::none;
        const char* relation = line.goal.kind == Goal::Kind::at_most ? "<= %.2f" : ">= %.2f";
        print_row({line.name,
                   in_unit(line.ours, line.unit),
                   in_unit(line.reference, line.unit),
                   number("%.2f", line.ratio),
                   goal ? number(relation, line.goal.bound) : "-",
                   !goal                       ? "-"
                   : line.goal.met(line.ratio) ? "met"
                                               : "MISSED"});
    }

    /// One line that the next one overwrites, for whoever watches; nothing in a log.
    static void progress(std::string_view text) {
        static const bool watched = isatty(STDERR_FILENO) == 1;
        if (watched) std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(text.size()), text.data());
    }

    void write_json(const std::string& path) const;

private:
    struct Row {
        std::string name, ours, reference, ratio, goal, verdict;
    };

    static void print_row(const Row& row) {
        std::printf("%-58s | %9s | %9s | %5s | %7s | %s\n",
                    row.name.c_str(),
                    row.ours.c_str(),
                    row.reference.c_str(),
                    row.ratio.c_str(),
                    row.goal.c_str(),
                    row.verdict.c_str());
        std::fflush(stdout);
    }

    Facts machine_;
    std::vector<Line> lines_;
};

[[nodiscard]] inline std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

inline void Report::write_json(const std::string& path) const {
    static constexpr const char* units[] = {"ns", "M/s", "B", "s", "k/s", "commands"};
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) throw std::runtime_error{"cannot write " + path};
    std::fprintf(file, "{\n");
    for (const auto& [what, text] : machine_) {
        std::fprintf(file, "  %s: %s,\n", quoted(what).c_str(), quoted(text).c_str());
    }
    std::fprintf(file, "  \"claims\": [");
    const char* separator = "\n";
    for (const Line& line : lines_) {
        std::fprintf(file,
                     "%s    {\"name\": %s, \"unit\": \"%s\", \"ours\": %.6g, \"reference\": %.6g, \"ratio\": %.4f",
                     std::exchange(separator, ",\n"),
                     quoted(line.name).c_str(),
                     units[static_cast<int>(line.unit)],
                     line.ours,
                     line.reference,
                     line.ratio);
        if (line.goal.kind != Goal::Kind::none) {
            std::fprintf(file,
                         ", \"%s\": %g, \"met\": %s",
                         line.goal.kind == Goal::Kind::at_most ? "at_most" : "at_least",
                         line.goal.bound,
                         line.goal.met(line.ratio) ? "true" : "false");
        }
        std::fprintf(file, "}");
    }
    std::fprintf(file, "\n  ]\n}\n");
    if (std::fclose(file) != 0) throw std::runtime_error{"cannot write " + path};
}

}  // namespace bench

#endif  // PENSTOCK_BENCH_REPORT_HPP
