// When a schedule changes weights, and whether its pipeline ever empties.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/estimate/steady_estimate.hpp"
#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// The pace of a schedule. Its steps are late (Pace::steps_late) where it keeps a version of the weights for gradients
/// of an earlier iteration, and not for predictions: PipeDream-2BW's two versions (Narayanan et al. 2021b, §3.1).
Pace pace_of(const Schedule& schedule);

/// The pace that planners assume for a schedule by name; that of a flush where it cannot run so many micro-batches.
Pace pace_of(const ScheduleRow& row, int ranks, int micro_batches);

} // namespace stagecraft
