// A replay without SimGrid, with the times of one on SimGrid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "sim/replay/max_min_flows.hpp"
#include "sim/replay/replay_apart.hpp"
#include "sim/replay/until_steady.hpp"

namespace stagecraft {

/// Runs a graph as replay_max_min() does where exchanges slow nothing down. Does by itself what FlowPhase
/// (sim/replay/simgrid/flows.hpp) has SimGrid's engine do, in the order in which that does it.
class MaxMinRun {
public:
  /// The request's graph and platform must outlive it. `origin`: where its clock starts, as clock_start() says.
  /// `apart`: how far it has come from there, to where flows have met; null: nowhere.
  MaxMinRun(const ReplayRequest& request, double origin, std::unique_ptr<ApartReplay> apart = nullptr);

  /// Throws std::runtime_error where tasks wait for each other.
  Timeline take();

private:
  enum class Timer { none, enter, follow };

  void share_from(double time);
  void run_engine();
  bool move_clock();
  bool ring();
  void handle_ended();
  void step();
  void arrived(const ArrivedFlow& one);
  void enter();
  void follow();

  UntilSteady until_;
  std::unique_ptr<ApartReplay> apart_;
  SharedFlows& flows_;
  MaxMinFlows met_;
  Recurrence<SharedFlows>& recurrence_;
  double now_; // of the engine's clock, which stands while no flow has met another
  Timer timer_ = Timer::none;
  double rings_at_ = 0;
};

} // namespace stagecraft
