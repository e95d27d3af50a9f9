// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "sim/analysis/adapt.hpp"

namespace stagecraft {
namespace {

std::vector<std::vector<DeviceId>> devices_by_operator(const Plan& plan, int operators) {
  std::vector<std::vector<DeviceId>> devices(operators);
  for (const Stage& stage : plan.stages) {
    for (const OperatorId op : stage.operators) {
      devices[op] = stage.devices;
    }
  }
  return devices;
}

} // namespace

Migration migration(const Problem& problem, const Plan& from, const Plan& to) {
  const ParameterBytes each = parameter_bytes(problem.training);
  const auto had = devices_by_operator(from, problem.model.size());
  const auto has = devices_by_operator(to, problem.model.size());
  std::map<std::pair<DeviceId, DeviceId>, Bytes> moved;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    const Bytes bytes{problem.model.operators[op].parameters * (each.weight + each.optimizer)};
    for (const DeviceId device : has[op]) {
      const auto& holders = had[op];
      if (holders.empty() || std::find(holders.begin(), holders.end(), device) != holders.end()) {
        continue;
      }
      const DeviceId source = *std::min_element(holders.begin(), holders.end(), [&](DeviceId a, DeviceId b) {
        return problem.path(a, device).time(bytes) < problem.path(b, device).time(bytes);
      });
      moved[{source, device}] += bytes;
    }
  }
  Migration sum;
  std::map<DeviceId, Seconds> sending;
  std::map<DeviceId, Seconds> receiving;
  for (const auto& [ends, bytes] : moved) {
    if (bytes.value > 0) {
      const Seconds time = problem.path(ends.first, ends.second).time(bytes);
      sum.bytes += bytes;
      sum.time = std::max({sum.time, sending[ends.first] += time, receiving[ends.second] += time});
    }
  }
  return sum;
}

} // namespace stagecraft
