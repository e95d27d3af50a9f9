// The request to a planner: what it has to plan, and what it may use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/estimate/balance_options.hpp"
#include "sim/plan/estimate/estimate.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

class ProblemMemo;
struct StrategyRow;

/// What a replay of one plan measured, over one period of its steady state.
struct Evaluation {
  Seconds iteration;
  std::vector<DeviceId> devices; ///< devices in use
  std::vector<Seconds> busy;     ///< per device: busy time
  std::vector<Seconds> tail;     ///< per device: from its last task to the end of the iteration
  std::string why_not;           ///< why the plan cannot run; the rest is empty then
  double noise = 0;              ///< relative standard error of `iteration`, if several were measured
};

/// What a strategy is called with. Planners that need to know the schedule get it through here.
struct PlanRequest {
  const Problem& problem;
  std::vector<DeviceId> devices; ///< devices to plan for, in the given order, each once
  bool groups = false; ///< each device stands for a group that shares operators in given degrees: none chooses others
  int chunks = 1;      ///< stages per device that the schedule wants
  StagePlacement stage_placement = StagePlacement::interleaved; ///< where it wants them
  const PipelineLayout* layers = nullptr;                       ///< what each stage has, where that is given
  InFlight in_flight;                                           ///< what stages hold under the schedule
  int versions = 1; ///< versions of the weights that the schedule keeps: the fewest of any stage, since only a replay
                    ///< knows the number of each
  std::uint64_t seed = 1; ///< for strategies that use random numbers
  bool drawn = false;     ///< one of many draws: by-hand then returns the first guess of one person
  /// Replays a plan under the study's schedule, training and true costs. Without it, a strategy that searches uses
  /// estimate_iteration().
  std::function<Evaluation(const Plan&)> evaluate;
  /// Seconds that `evaluate` surely measures of a plan that runs, but for rounding: what a search need not have
  /// replayed. Nothing where no bound is known.
  std::function<double(const Plan&)> at_least;
  /// Replays plans likewise on the study's own engine, which is slower: for the few that a search must choose from.
  /// Nothing where `evaluate` is.
  std::function<std::vector<Evaluation>(std::span<const Plan>)> replay;
  /// The plan of another strategy for the same schedule, or why it has none. Without it, a strategy that compares
  /// others asks them with this same request.
  std::function<PlanResult(const StrategyRow&)> plan_of;
  int budget = 200;            ///< most plans that a strategy may evaluate
  bool any_plan = false;       ///< any plan that `evaluate` says runs will do: a search may end at the first
  BalanceOptions balance;      ///< options of the strategy dynamic
  int state_cap = 6000;        ///< antichain states, docs/decisions/0004-state-cap.md
  ProblemMemo* memo = nullptr; ///< what planners found out of the problem at earlier questions, if anything is kept
};

} // namespace stagecraft
