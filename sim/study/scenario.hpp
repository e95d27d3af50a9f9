// What one run is asked to be, and what is made of it on the way to its figures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sim/result/run.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// One combination to run. Exactly one of `strategy` and `plan` is set, and one of `schedule` and `orders`, a schedule
/// from elsewhere.
struct Scenario {
  const StrategyRow* strategy = nullptr;
  const Plan* plan = nullptr;
  const ScheduleRow* schedule = nullptr;
  const Schedule* orders = nullptr;
  int micro_batches = 1;
  int recompute = 0;      ///< which of the training's choices
  std::uint64_t seed = 0; ///< of a strategy that draws; 0: the study's
  bool explain = true;    ///< where it does not fit, find out what would
  bool brief = false;     ///< figures alone: no names, bound or speed-up
};

/// A scenario made ready for replay, and after the replay its timeline and figures. Without a graph the run is
/// infeasible, or the same as run `twin`.
struct Prepared {
  Run run;
  Plan plan;
  Schedule schedule;
  std::unique_ptr<TaskGraph> graph;
  std::unique_ptr<TaskGraph> alone; ///< one iteration from empty, where iterations overlap
  bool lazy_recompute = false;      ///< what runs again waits for its gradient
  bool brief = false;               ///< as its scenario
  int twin = -1;                    ///< index of an equal one prepared earlier
  Timeline timeline;
};

} // namespace stagecraft
