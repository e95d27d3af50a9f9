// What passes take to get tensors from other stages and to send them on, beside the transfers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/plan/problem.hpp"
#include "sim/plan/stage_cost/stage_costs.hpp"

namespace stagecraft {

/// What enters and leaves a stage for one micro-batch, and what of it crosses from and to stages on other devices: how
/// many these are, and the bytes.
struct Borders {
  Bytes incoming, outgoing;
  int from = 0, to = 0;
  Bytes received{}, sent{};
};

/// Lengthens the passes of a stage by its hand-over. `gathers`: each device got a part, which its group gathers.
void add_hand_over(const Problem& problem, const Borders& borders, bool gathers, StageCost& cost);

} // namespace stagecraft
