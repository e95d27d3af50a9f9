// The whole model on every device; each takes samples in proportion to its speed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "sim/plan/shares.hpp"
#include "sim/plan/strategy.hpp"

namespace stagecraft {
PlanResult split_data_parallel(const PlanRequest& request) {
  const Problem& problem = request.problem;
  Stage stage;
  stage.operators.resize(problem.model.size());
  std::iota(stage.operators.begin(), stage.operators.end(), 0);
  stage.recompute = problem.training.recompute;
  std::vector<double> speeds;
  std::string reason;
  std::vector<DeviceId> able;
  for (const DeviceId device : request.devices) {
    const int type = problem.type_index(device);
    if (const std::string lacks = missing_kernel(problem, type, stage.operators); !lacks.empty()) {
      reason = lacks;
      continue;
    }
    able.push_back(device);
    speeds.push_back(1 / std::max(problem.prefix.seconds[type].back(), 1e-300));
  }
  if (able.empty()) {
    return Infeasible{reason};
  }
  const std::vector<double> shares = shares_by_speed(problem, speeds);
  for (std::size_t i = 0; i < able.size(); ++i) {
    if (shares[i] > 0) {
      stage.devices.push_back(able[i]);
      stage.shares.push_back(shares[i]);
    }
  }
  Plan plan{.stages = {stage}};
  if (able.size() < request.devices.size()) {
    plan.note = "left out devices that lack kernels: " + reason;
  } else if (stage.devices.size() < able.size()) {
    plan.note = "a micro-batch of " + to_text(problem.samples, 0) + " samples is too small for " +
                std::to_string(able.size()) + " devices";
  }
  return plan;
}

} // namespace stagecraft
