// SPDX-License-Identifier: MIT
// What a storage is asked, and why it may have no answer.
#ifndef PENSTOCK_STORE_HPP
#define PENSTOCK_STORE_HPP

#include <penstock/config.hpp>

#include <cstdint>

PENSTOCK_BEGIN_NAMESPACE

/// What a storage does with a client's state.
enum class Op : std::uint8_t { check, peek, refund, charge, reserve, reset };

/// Why a storage could not decide.
enum class StoreError : std::uint8_t {
    none,         ///< it did
    unavailable,  ///< the store cannot be reached or does not answer
};

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_STORE_HPP
