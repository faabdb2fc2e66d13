// SPDX-License-Identifier: MIT
// The library itself, behind the same interface as its peers.
#include "../core/ours.hpp"

#include <penstock/penstock.hpp>

#include "loops.hpp"
#include "peer.hpp"

namespace bench {
namespace {

template <class Clock>
struct Penstock : Ours<penstock::TokenBucket, Clock> {
    explicit Penstock(const Setup& setup) : Ours<penstock::TokenBucket, Clock>{bucket_of(setup.limit), setup.keys} {}
};

}  // namespace

const Peer penstock_peer = make_peer<Penstock<penstock::SteadyClock>, Penstock<penstock::ManualClock>>("penstock");

}  // namespace bench
