// Groups devices that are interchangeable for a planner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Two devices belong to one class if swapping them changes no cost: they have the same type, and the same paths to and
/// from all others. Two classes are twins if swapping all their members changes no cost either, as for two equal nodes
/// of a cluster.
struct DeviceClasses {
  std::vector<int> of;                        ///< [position in the list of devices]: its class
  std::vector<std::vector<DeviceId>> members; ///< [class], in the order of the list
  std::vector<int> twin;                      ///< [class]: its nearest earlier twin, or -1
};

/// The classes of these devices, each of which is listed once. Beyond 128 devices each is a class of its own, because
/// the comparison takes cubic time.
DeviceClasses device_classes(const Problem& problem, const std::vector<DeviceId>& devices);

} // namespace stagecraft
