// A replay without SimGrid that is looked at on its way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/replay/max_min_flows.hpp"
#include "sim/replay/recurrence.hpp"

namespace stagecraft {

/// Runs a graph as replay_max_min() does where exchanges slow nothing down; wholly, or as far as its period shows.
class MaxMinRun {
public:
  /// The request's graph and platform must outlive it.
  explicit MaxMinRun(const ReplayRequest& request);

  /// Up to when the first device has done all its work: what ends later is infinite. Where times cannot be told from
  /// numbers of inputs, and where not even one iteration has ended by then, all. Throws std::runtime_error where tasks
  /// wait for each other.
  Timeline until_idle();
  /// All.
  Timeline finish();

private:
  void step();
  bool done() const { return flows_.done() && met_.done(); }
  double next_time();
  double first_idle() const;

  const TaskGraph& graph_;
  std::size_t last_; // where the last iteration begins
  double origin_;
  SharedFlows flows_;
  MaxMinFlows met_;
  Recurrence<SharedFlows> recurrence_;
};

} // namespace stagecraft
