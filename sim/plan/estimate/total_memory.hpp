// What every plan of a model takes of the memory of all devices together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// What one copy of the model's weights, gradients and optimizer states takes, and what all devices have.
struct TotalShortage {
  Bytes need, have;
  Bytes largest; ///< memory of the device that has most
  std::size_t devices = 0;

  /// How many devices like the largest hold one copy: fewer never do.
  double least_devices() const;
};

/// Where even one copy is more than all of the devices hold: then no plan fits, whatever its split, micro-batches or
/// recompute. Nothing where a plan may fit, where the host holds a part (training.offload), or where training.parallel
/// gives the degrees, so that it is known how each device shares. O(operators + devices).
std::optional<TotalShortage> total_shortage(const Problem& problem, const std::vector<DeviceId>& devices);

/// "weights, gradients and optimizer states take 5.906 TiB, and all 16 devices have 1.250 TiB together; allowed: at
/// least 76 devices of 80.00 GiB".
std::string to_text(const TotalShortage& shortage);

} // namespace stagecraft
