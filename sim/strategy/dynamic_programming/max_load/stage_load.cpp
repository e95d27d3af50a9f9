// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/max_load/stage_load.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

// The cost of a route without its last link, or, if `inbound`, without its first; a single link stays.
PathCost without_far_link(const Platform& platform, const Route& route, bool inbound) {
  std::size_t links = 0;
  for (const Leg& leg : route.legs) {
    links += leg.links.size();
  }
  const std::size_t skipped = inbound ? 0 : links - 1;
  PathCost cost;
  std::size_t at = 0;
  for (const Leg& leg : route.legs) {
    double slowest = 0;
    for (const LinkId link : leg.links) {
      if (at++ != skipped || links == 1) {
        cost.latency += platform.links[link].latency;
        slowest = std::max(slowest, 1 / platform.links[link].bandwidth.value);
      }
    }
    cost.seconds_per_byte += slowest;
  }
  return cost;
}

PathCost slowest_route(const Problem& problem, const std::vector<DeviceId>& devices, DeviceId device) {
  PathCost slowest;
  for (const DeviceId other : devices) {
    if (other == device) {
      continue;
    }
    for (const bool inbound : {false, true}) {
      const Route* route = inbound ? problem.router.find(other, device) : problem.router.find(device, other);
      const PathCost cost = without_far_link(problem.platform, *route, inbound);
      slowest.latency = std::max(slowest.latency, cost.latency);
      slowest.seconds_per_byte = std::max(slowest.seconds_per_byte, cost.seconds_per_byte);
    }
  }
  return slowest;
}

} // namespace

std::vector<LoadGroup> load_groups(const Problem& problem, const std::vector<DeviceId>& devices) {
  std::vector<LoadGroup> groups;
  for (const DeviceId device : devices) {
    const PathCost route = slowest_route(problem, devices, device);
    const int type = problem.type_index(device);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const LoadGroup& group) {
      return group.type == type && group.route.latency == route.latency &&
             group.route.seconds_per_byte == route.seconds_per_byte;
    });
    (same == groups.end() ? groups.emplace_back(LoadGroup{type, route, {}}) : *same).devices.push_back(device);
  }
  return groups;
}

std::vector<CrossingTensor> crossing_tensors(const Problem& problem) {
  std::vector<CrossingTensor> tensors;
  for (const SharedTensor& tensor : problem.model.tensors) {
    const double bytes = problem.samples * tensor.elements * row_of(problem.training.precision).bytes;
    tensors.push_back({tensor.ends, bytes, 1});
  }
  for (OperatorId op = 0; op < problem.model.size() && problem.model.tensors.empty(); ++op) {
    const auto& users = problem.model.successors[op];
    if (!users.empty()) {
      tensors.push_back({{op}, 2 * problem.output_bytes(op).value, 2});
      tensors.back().ends.insert(tensors.back().ends.end(), users.begin(), users.end());
    }
  }
  return tensors;
}

double stage_load(const Problem& problem, const LoadGroup& group, const std::vector<CrossingTensor>& tensors,
                  const std::vector<char>& inside) {
  double load = 0;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    load += inside[op] != 0 ? problem.seconds(group.type, op) : 0;
  }
  for (const CrossingTensor& tensor : tensors) {
    const auto within =
        std::count_if(tensor.ends.begin(), tensor.ends.end(), [&](OperatorId end) { return inside[end] != 0; });
    if (within > 0 && within < static_cast<std::ptrdiff_t>(tensor.ends.size())) {
      load += tensor.transfers * group.route.latency.value + tensor.bytes * group.route.seconds_per_byte;
    }
  }
  return load;
}

} // namespace stagecraft
