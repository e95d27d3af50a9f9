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

/// Operators that may run on the same devices: those present that have the kernel and room for the operator alone.
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
  std::vector<double> weights;        ///< of each device, mean 1: a larger one draws more load
  std::vector<Candidates> candidates; ///< of all operators, those with equal devices together
  double step = 1;                    ///< of the weights, halved when they overshoot
  bool held = false;                  ///< the best plan goes on, nothing is tried
  Seconds iteration;
  std::vector<Seconds> waiting; ///< iteration - busy
  std::vector<Seconds> tail;    ///< from the device's last task to the end, within waiting
  std::string why_not;          ///< why the plan did not run; nothing is measured then
  std::string action;           ///< what followed from it, in words

  Seconds largest_waiting() const;
  Seconds mean_waiting() const;
  /// Of each device in all waiting; 0 where nobody waits.
  std::vector<double> waiting_shares() const;
  bool operator==(const BalanceRound&) const;
};

} // namespace stagecraft
