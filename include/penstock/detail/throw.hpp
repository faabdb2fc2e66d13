// SPDX-License-Identifier: MIT
// The one place where configuration errors are told: cold functions that build the text and throw it.
#ifndef PENSTOCK_DETAIL_THROW_HPP
#define PENSTOCK_DETAIL_THROW_HPP

#include <penstock/config.hpp>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

/// Called with the text of a configuration error where exceptions are off; the process aborts when it returns.
using ConfigurationErrorHandler = void (*)(const char* text);

namespace detail {

inline std::atomic<ConfigurationErrorHandler> configuration_error_handler{nullptr};

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_invalid(const std::string& text) {
#if PENSTOCK_EXCEPTIONS
    throw std::invalid_argument(text);
#else
    if (ConfigurationErrorHandler handler = configuration_error_handler.load()) {
        handler(text.c_str());
    } else {
        std::fprintf(stderr, "penstock: %s\n", text.c_str());
    }
    std::abort();
#endif
}

/// "TokenBucket.capacity is 0: allowed is 1 to 549755813888"
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_invalid(std::string_view field,
                                                                 const std::string& value,
                                                                 std::string_view allowed) {
    throw_invalid(std::string(field) + " is " + value + ": allowed is " + std::string(allowed));
}

}  // namespace detail

/// Sets what is called before the process aborts on a configuration error in a build without exceptions, and returns
/// the handler set before. Without a handler the text goes to stderr. Builds with exceptions throw
/// std::invalid_argument instead and never call it. Thread-safe.
inline ConfigurationErrorHandler on_configuration_error(ConfigurationErrorHandler handler) noexcept {
    return detail::configuration_error_handler.exchange(handler);
}

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_THROW_HPP
