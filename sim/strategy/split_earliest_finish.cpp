// Places each operator where it finishes earliest (a 2022 patent's placement), with equal weights for all devices.
// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/heuristic/placements.hpp"

namespace stagecraft {

PlanResult split_earliest_finish(const PlanRequest& request) {
  return place_earliest_finish(request, std::vector(request.devices.size(), 1.0));
}

PlanResult split_earliest_finish_contiguous(const PlanRequest& request) {
  return place_earliest_finish_contiguous(request, std::vector(request.devices.size(), 1.0));
}

} // namespace stagecraft
