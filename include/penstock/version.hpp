// SPDX-License-Identifier: MIT
// The version: CMake reads it here, and it stands in the inline namespace of every name.
#ifndef PENSTOCK_VERSION_HPP
#define PENSTOCK_VERSION_HPP

#define PENSTOCK_VERSION_MAJOR 1
#define PENSTOCK_VERSION_MINOR 0
#define PENSTOCK_VERSION_PATCH 0

/// The version as one number, for comparisons: 1.2.3 is 10203.
#define PENSTOCK_VERSION (PENSTOCK_VERSION_MAJOR * 10000 + PENSTOCK_VERSION_MINOR * 100 + PENSTOCK_VERSION_PATCH)

#endif  // PENSTOCK_VERSION_HPP
