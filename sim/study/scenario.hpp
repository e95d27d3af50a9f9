// What one run is asked to be, and what is prepared and measured for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sim/result/run.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// One combination to run. Exactly one of `strategy` and `plan` is set, and exactly one of `schedule` and `orders` (a
/// schedule from elsewhere).
struct Scenario {
  const StrategyRow* strategy = nullptr;
  const Plan* plan = nullptr;
  const ScheduleRow* schedule = nullptr;
  const Schedule* orders = nullptr;
  int micro_batches = 1;
  int recompute = 0;      ///< which of the training's choices
  std::uint64_t seed = 0; ///< seed for a strategy that draws; 0: the study's seed
  bool explain = true;    ///< where the plan does not fit, find a change that would make it fit
  bool brief = false;     ///< figures alone: no names, bound or speed-up
  bool any_plan = false;  ///< only asked whether it runs: a strategy that searches may end at the first plan that does

  /// The name of its schedule, or of its orders.
  std::string schedule_name() const { return schedule != nullptr ? std::string(schedule->name) : orders->name; }
};

/// A scenario made ready for replay, and after the replay its timeline and figures. Without a graph the run is
/// infeasible, or the same as run `twin`.
struct Prepared {
  Run run;
  Plan plan;
  Schedule schedule;
  std::vector<int> rank_of; ///< as in OrderedPlan
  int recompute = 0;        ///< as in its scenario
  std::unique_ptr<TaskGraph> graph;
  std::unique_ptr<TaskGraph> alone; ///< one iteration from empty, where iterations overlap
  bool lazy_recompute = false;      ///< recompute waits for its backward's gradient
  bool brief = false;               ///< as in its scenario
  int drift = -1;                   ///< which draw of `graph` the timeline is of (lockstep.hpp); -1: of `graph` itself
  int twin = -1;                    ///< index of an equal one prepared earlier
  Timeline timeline;
};

} // namespace stagecraft
