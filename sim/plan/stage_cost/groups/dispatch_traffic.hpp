// How many copies of a token cross the network and the links inside nodes, where each is sent once to a node and once
// to a rank.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sim/collective/dispatch.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// The traffic of the mixtures of a stage, which are taken to be alike.
class DispatchTraffics {
public:
  DispatchTraffics(const Problem& problem, const Stage& stage);

  /// Among devices that share experts, in the order of their ranks; valid while this lives. Null where the training's
  /// dispatcher sends otherwise, or the stage has no mixture.
  const DispatchTraffic* among(const std::vector<DeviceId>& devices);

private:
  const Problem& problem_;
  std::optional<Routing> routing_;
  DispatchTraffic of_token_;                          // its bytes, and the processors
  std::map<std::vector<int>, DispatchTraffic> known_; // [rank]: its node, counted from the first rank's on
};

/// The same of a mixture, where node_of says on which of the nodes, counted from 0, each rank is.
DispatchTraffic dispatch_traffic(const Routing& routing, const std::vector<int>& node_of);

} // namespace stagecraft
