// Iterations that follow one another, replayed one after the other in one order of tasks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// The times of a graph whose iterations overlap and whose transfers have their links for themselves; nothing where its
/// tasks have no order that suits every iteration, as behind loaders, and where devices change their speed. The times
/// are those of a recurrence that runs each device ahead (sim/replay/recurrence.hpp), to the last bit: what follows
/// from "start when all inputs are there" does not depend on the order in which it is worked out.
std::optional<Timeline> replay_in_order(const ReplayRequest& request);

} // namespace stagecraft
