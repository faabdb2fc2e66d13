// SPDX-License-Identifier: MIT
// All of penstock, Redis included: needs hiredis.
#ifndef PENSTOCK_PENSTOCK_REDIS_HPP
#define PENSTOCK_PENSTOCK_REDIS_HPP

#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#endif  // PENSTOCK_PENSTOCK_REDIS_HPP
