// Keys `adapt` and `believed` of a study: what happens to devices over time, and what planners believe of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/base/format/yaml.hpp"
#include "sim/platform/platform.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// The allowed speeds of a device, as multiples of its type's speed.
inline constexpr yaml::Range kSpeed{0.001, 1000, true, "0.001 to 1000"};

/// Something that happens to a device before an iteration of `adapt`.
struct AdaptEvent {
  int iteration = 0;
  DeviceId device = 0;
  double speed = 1; ///< from then on, as a multiple of its type's speed
  bool leaves = false;
};

/// Key `adapt` of a study: training over time.
struct AdaptOptions {
  int iterations = 100;
  int round_iterations = 5; ///< after which a policy may change the plan
  const ScheduleRow* schedule = nullptr;
  double jitter = 0;              ///< standard deviation of a device's speed in one iteration
  std::vector<AdaptEvent> events; ///< by iteration
};

/// Key `adapt` of a study; nothing where it has none. Throws InputError.
std::optional<AdaptOptions> read_adapt(yaml::Map& study, const Platform& platform);

/// Key `believed`: the speed of each device that planners believe, 1 where it says nothing. Throws InputError.
std::vector<double> read_beliefs(yaml::Map& study, const Platform& platform);

} // namespace stagecraft
