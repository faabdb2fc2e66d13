// SPDX-License-Identifier: MIT
// What happened in a second, and how it is drawn; nothing here is about the library.
#ifndef PENSTOCK_EXAMPLES_OUTAGE_DRAWING_HPP
#define PENSTOCK_EXAMPLES_OUTAGE_DRAWING_HPP

#include <penstock/decision.hpp>

#include "../picture.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drawing {

struct Second {
    std::string server{};
    std::string breaker{};
    std::uint64_t requests = 0;
    std::uint64_t allowed = 0;
    std::uint64_t greedy_allowed = 0;
    std::uint64_t by_store = 0;
    std::uint64_t by_fallback = 0;
    std::vector<std::chrono::microseconds> times{};

    void add(const penstock::Decision& decision, bool greedy, std::chrono::microseconds time) {
        ++requests;
        allowed += decision.allowed ? 1 : 0;
        greedy_allowed += decision.allowed && greedy ? 1 : 0;
        by_store += decision.source == penstock::Source::store ? 1 : 0;
        by_fallback += decision.source == penstock::Source::fallback ? 1 : 0;
        times.push_back(time);
    }

    /// 99 of 100 requests were decided at least as fast.
    [[nodiscard]] std::chrono::microseconds p99() {
        const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() * 99 / 100);
        std::nth_element(times.begin(), at, times.end());
        return *at;
    }
};

/// A column for each second: who decided, and under it what the server did, the breaker's state and the latency.
class Svg {
public:
    Svg(std::ostream& out, const std::vector<Second>& seconds)
        : seconds_(seconds), picture_(out, left + static_cast<int>(seconds.size()) * pitch + 20, height, title, style) {
    }

    void write() {
        picture_.text("title", 20, 38, title);
        legend();
        for (const auto& [row, name] : {std::pair{0, "server"}, {1, "breaker"}, {2, "p99"}}) {
            picture_.text("quiet", 20, line(row), name);
        }
        int column = 0;
        for (Second& second : seconds_) {
            draw(second, left + column++ * pitch);
        }
    }

private:
    static constexpr std::string_view title = "Requests per second while the store dies, comes back, hangs and goes on";
    static constexpr int left = 90, pitch = 84, bar = 64, base = 300, height = 390;
    static constexpr std::uint64_t per_pixel = 3;
    static constexpr std::string_view style = R"(.store { fill: #2a7fb8 }
.fallback { fill: #8a63d2 }
.rejected { fill: #e8893c }
)";

    [[nodiscard]] static int line(int row) { return base + 26 + row * 22; }

    void legend() {
        int x = 20;
        for (const auto& [kind, name] : {std::pair{"store", "allowed by the store"},
                                         {"fallback", "allowed by this process alone"},
                                         {"rejected", "rejected"}}) {
            picture_.rect(kind, x, 52, 12, 12);
            picture_.text("", x + 18, 63, name);
            x += 230;
        }
    }

    void draw(Second& second, int x) {
        // Who decided most of them decides the colour of what was allowed: seconds begin when the server changes.
        const std::uint64_t decided = second.by_store + second.by_fallback;
        const std::uint64_t by_store = decided == 0 ? 0 : second.allowed * second.by_store / decided;
        int y = base;
        for (const auto& [kind, count] : {std::pair{"store", by_store},
                                          {"fallback", second.allowed - by_store},
                                          {"rejected", second.requests - second.allowed}}) {
            const int size = static_cast<int>(count / per_pixel);
            y -= size;
            picture_.rect(kind, x, y, bar, size);
        }
        picture_.text("middle", x + bar / 2, line(0), second.server);
        picture_.text("middle", x + bar / 2, line(1), second.breaker);
        picture_.text("middle", x + bar / 2, line(2), std::to_string(second.p99().count()) + " us");
    }

    std::vector<Second> seconds_;
    support::Picture picture_;
};

inline void write_svg(std::ostream& out, const std::vector<Second>& seconds) {
    Svg(out, seconds).write();
}

}  // namespace drawing

#endif  // PENSTOCK_EXAMPLES_OUTAGE_DRAWING_HPP
