// A platform whose devices compute faster or slower than their types say, and costs that match. It stands for what a
// planner believes, or for what has changed during training.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "sim/cost/cost_model.hpp"

namespace stagecraft {

/// Devices, links and memory stay as they were; a type is copied where its devices differ in speed. The cost model
/// keeps a reference to the one it was made from.
struct SpeedWorld {
  Platform platform;
  std::unique_ptr<CostModel> cost;
};

/// The world where device d computes speeds[d] > 0 times as fast as its type says, launches and the optimiser step
/// included.
SpeedWorld at_speeds(const Platform& platform, const CostModel& cost, std::span<const double> speeds);

} // namespace stagecraft
