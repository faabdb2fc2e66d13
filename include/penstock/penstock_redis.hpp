// SPDX-License-Identifier: MIT
// All of penstock, guards and Redis included: needs hiredis.
#ifndef PENSTOCK_PENSTOCK_REDIS_HPP
#define PENSTOCK_PENSTOCK_REDIS_HPP

#include <penstock/guard/denied_cache.hpp>
#include <penstock/guard/guarded.hpp>
#include <penstock/guard/leased.hpp>
#include <penstock/guard/share.hpp>
#include <penstock/guard/shed.hpp>
#include <penstock/guard/split.hpp>
#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#endif  // PENSTOCK_PENSTOCK_REDIS_HPP
