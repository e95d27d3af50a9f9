// Small changes to a chain of stages on groups of devices: the moves of a search.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/platform/platform.hpp"

namespace stagecraft {

/// Stage s runs the operators [bounds[s], bounds[s+1]) on groups[s], its replicas. No stage and no group is empty.
struct StageGroups {
  std::vector<int> bounds;
  std::vector<std::vector<DeviceId>> groups; ///< each ascending
  std::vector<DeviceId> idle;                ///< ascending

  int stages() const { return static_cast<int>(groups.size()); }
  bool operator==(const StageGroups&) const = default;
};

/// A random boundary moves by one operator, or, half of the time, anywhere between its neighbours. Like all moves,
/// returns nothing if what was drawn cannot be done.
std::optional<StageGroups> shift_boundary(const StageGroups& from, Random& random);

/// Two random devices change places; they are in different stages, or one of them is idle.
std::optional<StageGroups> swap_devices(const StageGroups& from, Random& random);

/// A random device goes to another stage or becomes idle, or an idle one goes to a stage. If a stage loses its last
/// device, its operators join a neighbouring stage: the one that gets the device, if that is a neighbour.
std::optional<StageGroups> move_device(const StageGroups& from, Random& random);

/// A random stage is cut in two at a random place. The new one gets a random part of the group or, if the group has one
/// device, an idle device.
std::optional<StageGroups> split_stage(const StageGroups& from, Random& random);

/// One of the four: half of the time a boundary, else one of the others.
std::optional<StageGroups> random_move(const StageGroups& from, Random& random);

} // namespace stagecraft
