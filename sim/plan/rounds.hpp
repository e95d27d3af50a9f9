// What a strategy that measures its plans round by round writes down (2022 patent; docs/model.md, "Dynamic balancing").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/platform/platform.hpp"
#include "sim/workload/model_graph.hpp"

namespace stagecraft {

struct Stage;

/// Operators that may run on the same devices: those that are present, have the kernel, and have room for the operator
/// alone.
struct Candidates {
  std::vector<OperatorId> operators;
  std::vector<DeviceId> devices;
  bool operator==(const Candidates&) const = default;
};

/// One round of dynamic balancing: a plan, what it was made from, and what it measured. Lists per device follow
/// `devices`; a device that the plan does not use waits all the time.
struct BalanceRound {
  std::vector<Stage> stages;          ///< the plan
  std::vector<DeviceId> devices;      ///< present
  std::vector<double> weights;        ///< per device, with mean 1: a larger weight attracts more load
  std::vector<Candidates> candidates; ///< for all operators; operators with the same devices share an entry
  double step = 1;                    ///< step size of the weights, halved when they overshoot
  bool held = false;                  ///< the best plan is kept, nothing new is tried
  Seconds iteration;
  std::vector<Seconds> waiting; ///< iteration - busy
  std::vector<Seconds> tail;    ///< from the device's last task to the end, within waiting
  std::string why_not;          ///< why the plan did not run; nothing is measured then
  std::string action;           ///< what the strategy did next, in words

  Seconds largest_waiting() const;
  Seconds mean_waiting() const;
  /// Each device's share of all waiting; 0 if nobody waits.
  std::vector<double> waiting_shares() const;
  bool operator==(const BalanceRound&) const;
};

} // namespace stagecraft
