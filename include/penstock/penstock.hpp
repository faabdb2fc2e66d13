// SPDX-License-Identifier: MIT
// The core of penstock: rate limiting in this process, with the standard library alone.
#ifndef PENSTOCK_PENSTOCK_HPP
#define PENSTOCK_PENSTOCK_HPP

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/check.hpp>
#include <penstock/clock.hpp>
#include <penstock/concepts.hpp>
#include <penstock/decision.hpp>
#include <penstock/hash.hpp>
#include <penstock/key.hpp>
#include <penstock/limiter.hpp>
#include <penstock/plan.hpp>
#include <penstock/rate.hpp>
#include <penstock/storage/local.hpp>
#include <penstock/store.hpp>
#include <penstock/version.hpp>

#endif  // PENSTOCK_PENSTOCK_HPP
