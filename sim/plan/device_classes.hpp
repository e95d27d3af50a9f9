// Devices that a planner need not tell apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Two devices are of one class when swapping them changes no cost: same type, same paths to and from all others. Two
/// classes are twins when swapping all their members changes none either, as two equal nodes of a cluster do.
struct DeviceClasses {
  std::vector<int> of;                        ///< [position in the list of devices]: its class
  std::vector<std::vector<DeviceId>> members; ///< [class], in the order of the list
  std::vector<int> twin;                      ///< [class]: its nearest earlier twin, or -1
};

/// Classes of the devices listed, each once. Beyond 128 devices each is a class of its own: the comparison is cubic.
DeviceClasses device_classes(const Problem& problem, const std::vector<DeviceId>& devices);

} // namespace stagecraft
