// The one function of the module stagecraft_simgrid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/replay/replay.hpp"
#include "sim/replay/replay_apart.hpp"

namespace stagecraft {

/// Replays on SimGrid. With `computes`, computations are Execs, else timers. `apart`: how far the only request has come
/// without SimGrid, from where its clock starts; null: nowhere. Throws what a ReplayFunction throws.
extern "C" [[gnu::visibility("default")]] void stagecraft_replay_simgrid(std::span<const ReplayRequest> requests,
                                                                         bool computes, ApartReplay* apart,
                                                                         std::vector<Timeline>& timelines);

} // namespace stagecraft
