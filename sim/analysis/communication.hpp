// What devices send each other, by the kind of parallelism that makes them, and what it costs them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Communication along one axis in an iteration; the mean over the devices in use.
struct Communication {
  std::string axis; ///< "pipeline": between stages; "data": gradients and parameters of replicas; "tensor": exchanges
  Seconds exposed;  ///< a device computes nothing and waits for it while it is under way
  Seconds hidden;   ///< it is under way beside a device that takes part in it and computes, or waits for other things
  Seconds
      for_peers; ///< a device computes nothing and waits for it before it is under way, since others are not there yet
};

/// The axes along which anything is sent. Where exchanges of a tensor-parallel group are a part of computations, they
/// have the times that they take alone, and nobody waits for peers.
std::vector<Communication> communication_of(const TaskGraph& graph, const Timeline& timeline);

} // namespace stagecraft
