// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/collective.hpp"

namespace stagecraft {

Bytes ring_all_reduce_bytes(int ranks, Bytes buffer) {
  return ranks <= 1 ? Bytes{0} : buffer * (2.0 * (ranks - 1) / ranks);
}

int ring_all_reduce_steps(int ranks) { return ranks <= 1 ? 0 : 2 * (ranks - 1); }

Seconds ring_all_reduce_time(int ranks, Bytes buffer, const PathCost& slowest) {
  return slowest.latency * ring_all_reduce_steps(ranks) +
         Seconds{ring_all_reduce_bytes(ranks, buffer).value * slowest.seconds_per_byte};
}

} // namespace stagecraft
