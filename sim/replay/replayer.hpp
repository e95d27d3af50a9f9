// An engine on several cores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/base/bytes.hpp"
#include "sim/replay/replay.hpp"

namespace stagecraft {

/// Replays as its engine does, in batches. With several workers the batches are shared out over forked children; since
/// they are the same for any number of workers, so are the timelines, to the last bit.
class Replayer {
public:
  Replayer(ReplayFunction engine, int workers = 1) : engine_(engine), workers_(workers) {}

  std::vector<Timeline> operator()(std::span<const ReplayRequest> requests) const;
  bool shares_links() const { return engine_ != replay_analytic; }
  /// The same timelines, to the last bit, without starting SimGrid for each of many graphs.
  Replayer for_many() const { return {engine_ == replay_simgrid ? replay_max_min : engine_, workers_}; }
  /// The same without children.
  Replayer alone() const { return {engine_}; }
  int workers() const { return workers_; }

private:
  ReplayFunction engine_;
  int workers_;
};

/// A timeline for another process, and from there.
void put_timeline(std::string& bytes, const Timeline& timeline);
Timeline take_timeline(ByteReader& reader);

} // namespace stagecraft
