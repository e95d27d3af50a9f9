// What passes do step by step that are one task each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/task_graph/expand_exchanges.hpp"

namespace stagecraft {

/// Writes down the steps of each computation whose Work::steps is the number of a pass in the plan, on devices whose
/// type says that exchanges slow computations down; that of all others becomes -1. Where a group does not know in which
/// ways it exchanges data, its passes have none.
void note_steps(TaskGraph& graph, const ExchangePlan& plan, const Platform& platform);

} // namespace stagecraft
