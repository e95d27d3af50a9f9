// A replay without SimGrid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/replay/max_min_flows.hpp"
#include "sim/replay/until_steady.hpp"

namespace stagecraft {

/// Runs a graph as replay_max_min() does where exchanges slow nothing down.
class MaxMinRun {
public:
  /// The request's graph and platform must outlive it. `origin`: where its clock starts, as clock_start() says.
  MaxMinRun(const ReplayRequest& request, double origin);

  /// Throws std::runtime_error where tasks wait for each other.
  Timeline take();

private:
  double step();
  bool done() const { return flows_.done() && met_.done(); }

  UntilSteady until_;
  SharedFlows flows_;
  MaxMinFlows met_;
  Recurrence<SharedFlows> recurrence_;
};

} // namespace stagecraft
