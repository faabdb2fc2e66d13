// SPDX-License-Identifier: MIT
// What the compiler and the system can do: each switch is 0 or 1, and a value given by the user wins.
#ifndef PENSTOCK_CONFIG_HPP
#define PENSTOCK_CONFIG_HPP

#include <penstock/version.hpp>

// 1: wrong configuration throws. 0: it is told to the handler of on_configuration_error(), then the process aborts.
#ifndef PENSTOCK_EXCEPTIONS
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define PENSTOCK_EXCEPTIONS 1
#else
#define PENSTOCK_EXCEPTIONS 0
#endif
#endif

// 1: the compiler has a 128-bit integer. 0: long multiplication and division by hand, several times slower.
#ifndef PENSTOCK_INT128
#if defined(__SIZEOF_INT128__)
#define PENSTOCK_INT128 1
#else
#define PENSTOCK_INT128 0
#endif
#endif

// 1: tables ask the system for large pages. 0: they take what comes.
#ifndef PENSTOCK_HUGE_PAGES
#define PENSTOCK_HUGE_PAGES 1
#endif

// 1: connections to Redis may use TLS, through OpenSSL. 0: they may not. The CMake target penstock::redis sets it.
#ifndef PENSTOCK_OPENSSL
#define PENSTOCK_OPENSSL 0
#endif

// What runs on every check is one function once compiled: a Decision that travels through memory from function to
// function costs a third of a check, since processors wait before they load in wide pieces what was stored in narrow
// ones.
#if defined(__GNUC__)
#define PENSTOCK_INLINE [[gnu::always_inline]]
#define PENSTOCK_NOINLINE [[gnu::noinline]]
#else
#define PENSTOCK_INLINE
#define PENSTOCK_NOINLINE
#endif

// Code built with and without exceptions differs in inline functions: the tag keeps the two from being linked as one.
#if PENSTOCK_EXCEPTIONS
#define PENSTOCK_ABI_TAG
#else
#define PENSTOCK_ABI_TAG _noexcept
#endif

#define PENSTOCK_CONCAT_IMPL(major, minor, patch, tag) v##major##_##minor##_##patch##tag
#define PENSTOCK_CONCAT(major, minor, patch, tag) PENSTOCK_CONCAT_IMPL(major, minor, patch, tag)
#define PENSTOCK_ABI                                                                                                   \
    PENSTOCK_CONCAT(PENSTOCK_VERSION_MAJOR, PENSTOCK_VERSION_MINOR, PENSTOCK_VERSION_PATCH, PENSTOCK_ABI_TAG)

#define PENSTOCK_BEGIN_NAMESPACE                                                                                       \
    namespace penstock {                                                                                               \
    inline namespace PENSTOCK_ABI {
#define PENSTOCK_END_NAMESPACE                                                                                         \
    }                                                                                                                  \
    }

#endif  // PENSTOCK_CONFIG_HPP
