// Max-min sharing where nothing has to be shared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/replay/recurrence.hpp"
#include "sim/replay/shared_flows.hpp"

namespace stagecraft {

/// A replay until flows meet on a full link. Until then each has the rate that it has alone, which is what max-min
/// sharing gives it.
class ApartReplay {
public:
  /// The request's graph, platform and lists must outlive it. `origin`: where its clock starts.
  ApartReplay(const ReplayRequest& request, double origin)
      : flows(request.graph, request.platform), recurrence(request, &flows, origin) {}

  /// Runs to the end, or until flows meet. They are then in flows.met(), and it is `met_at`.
  void run();
  bool has_met() const { return !flows.met().empty(); }

  SharedFlows flows;
  Recurrence<SharedFlows> recurrence;
  double met_at = 0;
};

/// Whether another one may go on where an ApartReplay of the request stopped: where iterations overlap, how far it goes
/// is watched from its start (UntilSteady).
bool may_go_on(const ReplayRequest& request);

/// What SimGrid would say of a graph of which no flows meet on a full link. Nothing where some do meet. Throws what a
/// ReplayFunction throws.
std::optional<Timeline> replay_apart(const ReplayRequest& request);

} // namespace stagecraft
