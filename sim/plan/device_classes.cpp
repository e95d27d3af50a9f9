// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/device_classes.hpp"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr std::size_t kMostCompared = 128;

bool same_path(const Problem& problem, DeviceId a, DeviceId b, DeviceId c, DeviceId d) {
  const PathCost first = problem.path(a, b);
  const PathCost second = problem.path(c, d);
  return first.latency == second.latency && first.seconds_per_byte == second.seconds_per_byte;
}

// Whether a and b have the same costs to and from all the others.
bool interchangeable(const Problem& problem, const std::vector<DeviceId>& others, DeviceId a, DeviceId b) {
  return problem.type_index(a) == problem.type_index(b) && same_path(problem, a, b, b, a) &&
         std::all_of(others.begin(), others.end(), [&](DeviceId other) {
           return other == a || other == b ||
                  (same_path(problem, a, other, b, other) && same_path(problem, other, a, other, b));
         });
}

// Members of a class are alike, so one stands for all.
bool mirror(const Problem& problem, const std::vector<std::vector<DeviceId>>& classes, std::size_t a, std::size_t b) {
  const auto& first = classes[a];
  const auto& second = classes[b];
  if (first.size() != second.size() ||
      (first.size() > 1 && !same_path(problem, first[0], first[1], second[0], second[1]))) {
    return false;
  }
  std::vector<DeviceId> others;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (c != a && c != b) {
      others.push_back(classes[c].front());
    }
  }
  return interchangeable(problem, others, first.front(), second.front());
}

} // namespace

DeviceClasses device_classes(const Problem& problem, const std::vector<DeviceId>& devices) {
  DeviceClasses classes;
  for (const DeviceId device : devices) {
    auto found = classes.members.end();
    if (devices.size() <= kMostCompared) {
      found = std::find_if(classes.members.begin(), classes.members.end(), [&](const std::vector<DeviceId>& members) {
        return interchangeable(problem, devices, members.front(), device);
      });
    }
    classes.of.push_back(static_cast<int>(found - classes.members.begin()));
    if (found == classes.members.end()) {
      classes.members.push_back({device});
    } else {
      found->push_back(device);
    }
  }
  classes.twin.assign(classes.members.size(), -1);
  for (std::size_t c = 1; c < classes.members.size() && devices.size() <= kMostCompared; ++c) {
    for (std::size_t earlier = c; earlier-- > 0 && classes.twin[c] < 0;) {
      classes.twin[c] = mirror(problem, classes.members, earlier, c) ? static_cast<int>(earlier) : -1;
    }
  }
  return classes;
}

} // namespace stagecraft
