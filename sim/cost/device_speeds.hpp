// A platform whose devices compute faster or slower than their types say, and costs to match: what a planner believes,
// or what has become true.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "sim/cost/cost_model.hpp"

namespace stagecraft {

/// Devices, links and memory as they were; types multiply where devices of one type differ in speed. The cost model
/// refers to the one it was made from.
struct SpeedWorld {
  Platform platform;
  std::unique_ptr<CostModel> cost;
};

/// Device d computes speeds[d] > 0 times as fast as its type says, launches and the optimiser step included.
SpeedWorld at_speeds(const Platform& platform, const CostModel& cost, std::span<const double> speeds);

} // namespace stagecraft
