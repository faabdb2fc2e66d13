// SPDX-License-Identifier: MIT
// How failed assertions show the library's answers.
#ifndef PENSTOCK_TESTS_SUPPORT_PRINT_HPP
#define PENSTOCK_TESTS_SUPPORT_PRINT_HPP

#include <penstock/decision.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <ostream>
#include <sstream>
#include <string_view>

namespace penstock {

inline std::ostream& operator<<(std::ostream& out, Source source) {
    return out << to_string(source);
}

inline std::ostream& print_duration(std::ostream& out, std::chrono::microseconds duration) {
    if (duration == never) {
        return out << "never";
    }
    return out << duration.count() << " us";
}

inline std::ostream& operator<<(std::ostream& out, const Decision& decision) {
    out << (decision.allowed ? "allowed" : "rejected") << ", limit " << decision.limit << ", remaining "
        << decision.remaining << ", retry_after ";
    print_duration(out, decision.retry_after) << ", reset_after ";
    return print_duration(out, decision.reset_after) << ", source " << decision.source;
}

inline std::ostream& operator<<(std::ostream& out, const Reservation& reservation) {
    out << '{' << reservation.decision << "}, wait ";
    return print_duration(out, reservation.wait);
}

}  // namespace penstock

// An enumeration would be shown as its number.
template <>
struct doctest::StringMaker<penstock::Source> {
    static String convert(penstock::Source source) {
        const std::string_view text = penstock::to_string(source);
        return {text.data(), static_cast<unsigned>(text.size())};
    }
};

template <class Rep, class Period>
struct doctest::StringMaker<std::chrono::duration<Rep, Period>> {
    static String convert(std::chrono::duration<Rep, Period> duration) {
        std::ostringstream out;
        penstock::print_duration(out, std::chrono::duration_cast<std::chrono::microseconds>(duration));
        return out.str().c_str();
    }
};

#endif  // PENSTOCK_TESTS_SUPPORT_PRINT_HPP
