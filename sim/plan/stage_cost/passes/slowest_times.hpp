// Times of operators' shards on a group of unlike devices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/base/improves.hpp"
#include "sim/cost/alike_times.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// The slowest of some device types for each pass of an operator; infinite where one of them lacks a kernel.
class SlowestTimes {
public:
  /// For a share of the micro-batch; the problem must outlive this.
  SlowestTimes(const Problem& problem, const std::vector<int>& types, double share) {
    for (const int type : types) {
      known_.emplace_back(problem.cost, problem.platform.types[type], problem.samples * share,
                          problem.training.precision);
    }
  }

  OperatorTime of(OperatorId op, const Shard& shard) {
    OperatorTime most{};
    for (AlikeTimes& of_type : known_) {
      const std::optional<OperatorTime>& time = of_type.of_shard(op, shard);
      const Seconds never{kInfinity};
      most.forward = std::max(most.forward, time ? time->forward : never);
      most.backward_input = std::max(most.backward_input, time ? time->backward_input : never);
      most.backward_weight = std::max(most.backward_weight, time ? time->backward_weight : never);
    }
    return most;
  }

private:
  std::vector<AlikeTimes> known_; // [type]
};

} // namespace stagecraft
