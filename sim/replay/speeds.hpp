// Devices whose speed changes while a graph runs, and how long a computation takes on them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// The speed changes of a request, by device of its graph.
class Speeds {
public:
  Speeds(const TaskGraph& graph, std::span<const SpeedChange> changes);

  bool constant() const { return steps_.empty(); } ///< whether every speed is always 1
  /// When a computation ends that starts at `start` on a device of the graph and takes `seconds` at speed 1: when the
  /// integral of the speed reaches `seconds`.
  double finish(std::size_t device, double start, double seconds) const;
  /// What a device of the graph computes between two times, in seconds at speed 1: the integral of its speed.
  double done(std::size_t device, double from, double to) const;

  struct Step {
    double at, speed;
  };
  /// The changes of a device, in ascending order; before the first its speed is 1.
  std::span<const Step> steps(std::size_t device) const { return steps_[device]; }

private:
  std::vector<std::vector<Step>> steps_; ///< [device]; empty when constant
};

} // namespace stagecraft
