// The same number of operators in every stage.
// SPDX-License-Identifier: Apache-2.0

#include "sim/strategy/dynamic_programming/cuts.hpp"
#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"
#include "sim/strategy/first_plans.hpp"

namespace stagecraft {

std::vector<int> uniform_cuts(int layers, int parts) {
  std::vector<int> bounds = {0};
  for (int part = 0; part < parts; ++part) {
    const int size = layers / parts + (part < layers % parts ? 1 : 0);
    bounds.push_back(bounds.back() + size);
  }
  return bounds;
}

PlanResult split_uniform(const PlanRequest& request) {
  if (const std::string reason = too_many_stages(request); !reason.empty() && request.chunks > 1) {
    return Infeasible{reason};
  }
  const std::vector<DeviceId> devices = chunked_devices(request);
  return make_chain_plan(request, uniform_cuts(request.problem.model.size(), static_cast<int>(devices.size())),
                         devices);
}

} // namespace stagecraft
