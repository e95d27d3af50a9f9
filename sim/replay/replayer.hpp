// An engine on several cores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/replay/replay.hpp"

namespace stagecraft {

/// Replays as its engine does, in batches. With several workers the batches are shared out over forked children; since
/// they are the same for any number of workers, so are the timelines, to the last bit.
class Replayer {
public:
  Replayer(ReplayFunction engine, int workers = 1) : engine_(engine), workers_(workers) {}

  std::vector<Timeline> operator()(std::span<const ReplayRequest> requests) const;
  bool shares_links() const { return engine_ != replay_analytic; }
  /// The same with another engine.
  Replayer with(ReplayFunction engine) const { return {engine, workers_}; }

private:
  ReplayFunction engine_;
  int workers_;
};

} // namespace stagecraft
