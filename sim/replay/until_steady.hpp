// Replays of iterations that overlap go as far as their period shows, and no further.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/replay/recurrence.hpp"
#include "sim/replay/shared_flows.hpp"

namespace stagecraft {

/// Watches a recurrence that goes in the order of time. Until a device has done all its work of some iterations, they
/// are the same whether more follow or not. So one replay of many tells what replays of few, of twice as many, and so
/// on would tell of their period.
class UntilSteady {
public:
  /// Where most_iterations allows it; else nothing is watched, and reached() is never true. `origin`: of the
  /// recurrence's times.
  UntilSteady(const ReplayRequest& request, double origin);

  /// The request with all iterations that may be needed.
  const ReplayRequest& request() const { return request_; }

  /// Looks at what has happened by `now`; not at each call, since it takes a while.
  void watch(const Recurrence<SharedFlows>& recurrence, double now) {
    if (watches_ && --events_ < 0) {
      look(recurrence, now);
    }
  }
  /// Whether all that the period follows from had happened when it last looked.
  bool reached() const { return reached_; }

  /// The times of the iterations that told the period, those that are not known yet infinite; if none did, all.
  Timeline take(Recurrence<SharedFlows>& recurrence);

private:
  void look(const Recurrence<SharedFlows>& recurrence, double now);
  double first_idle(const Recurrence<SharedFlows>& recurrence) const;

  ReplayRequest request_;
  double origin_;
  bool watches_;
  int iterations_; // watched now
  int events_ = 0; // until the next look
  bool reached_ = false;
};

} // namespace stagecraft
