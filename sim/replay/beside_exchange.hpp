// Computations that take longer while their device exchanges data: docs/model.md, "Beside exchanges".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// Replays with an engine that knows nothing of it what device types say in `beside_exchange`: a computation runs at
/// 1 / factor of its speed while its device takes part in a transfer among devices of one vendor. Requests without such
/// a type are replayed once. Others are replayed until durations and overlaps agree, each at most kMostReplays times,
/// after which the last one counts. In large ones they may never agree, but go round: once kMostExecuted tasks have run
/// in all replays, it is enough that the last kAlikeReplays have ended at one time to a part of kAlikeEnds.
std::vector<Timeline> replay_beside_exchanges(ReplayFunction engine, std::span<const ReplayRequest> requests);

inline constexpr int kMostReplays = 200;
inline constexpr int kAlikeReplays = 8;
inline constexpr double kMostExecuted = 16e6, kAlikeEnds = 1e-4;

/// Whether any device type of a platform says that exchanges slow its computations down.
bool exchanges_slow(const Platform& platform);

} // namespace stagecraft
