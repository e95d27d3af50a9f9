// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/collective_seconds.hpp"

namespace stagecraft {

CollectiveSeconds::CollectiveSeconds(const Problem& problem, CollectiveKind kind, const std::vector<DeviceId>& devices)
    : kind_(kind) {
  if (devices.size() < 2) {
    return;
  }
  if (problem.training.all_reduce == &kHopByHop) {
    ring_ = ring_of(devices, problem.router);
    return;
  }
  const bool by_name = kind != CollectiveKind::all_to_all; // names are of algorithms that reduce
  ways_ =
      ways_of(kind, devices, problem.router, by_name ? problem.training.all_reduce->name : kAllReduces.front().name);
}

Seconds CollectiveSeconds::of(Bytes bytes) const {
  if (bytes.value == 0 || (ways_.empty() && ring_.ranks < 2)) {
    return Seconds{0};
  }
  return ways_.empty() ? seconds_of({kind_, ring_, bytes}) : seconds_of(fastest_of(ways_, bytes).flows, bytes);
}

} // namespace stagecraft
