// Devices of one type are not equally fast, and who waits for all of them waits for the slowest.
// docs/model.md, "The slowest of many".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/platform/platform.hpp"

namespace stagecraft {

/// The slowest device of a type.
struct SlowestDevice {
  std::string type;  ///< its name
  int devices = 0;   ///< that the platform has of the type
  double longer = 1; ///< how many times as long its products take as those of the mean device: 1 or more
};

/// The slowest device of each type of which the platform has several, where the times of products differ between
/// devices by this relative standard deviation: as is expected of so many normal draws.
std::vector<SlowestDevice> slowest_devices(const Platform& platform, double spread);

} // namespace stagecraft
