// Devices whose speed changes while a graph runs: how long a computation takes then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// The changes of a request by device of its graph.
class Speeds {
public:
  Speeds(const TaskGraph& graph, std::span<const SpeedChange> changes);

  bool constant() const { return steps_.empty(); } ///< 1 everywhere, always
  /// When a computation of `seconds` at speed 1 ends that starts on device `device` of the graph: the work done until
  /// then, the integral of the speed, is `seconds`.
  double finish(std::size_t device, double start, double seconds) const;

  struct Step {
    double at, speed;
  };
  /// Of a device: ascending, none before the first change.
  std::span<const Step> steps(std::size_t device) const { return steps_[device]; }

private:
  std::vector<std::vector<Step>> steps_; ///< [device]; empty when constant
};

} // namespace stagecraft
