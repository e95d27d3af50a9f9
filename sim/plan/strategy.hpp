// Strategies: how a model is split over devices. One file each, one row each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/balance_options.hpp"
#include "sim/plan/estimate.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/problem.hpp"

namespace stagecraft {

/// What a replay of one plan measured, over one period of its steady state.
struct Evaluation {
  Seconds iteration;
  std::vector<DeviceId> devices; ///< in use
  std::vector<Seconds> busy;     ///< of each of them
  std::vector<Seconds> tail;     ///< of each, from its last task to the end of the iteration
  std::string why_not;           ///< why the plan cannot run; the rest is empty then
  double noise = 0;              ///< standard error of `iteration`, relative, where several were measured
};

/// What a strategy is called with. Planners that need to know the schedule get it through here.
struct PlanRequest {
  const Problem& problem;
  std::vector<DeviceId> devices;     ///< in the given order, each once
  int chunks = 1;                    ///< stages per device that the schedule wants
  Dealing dealing = Dealing::rounds; ///< and where it has them
  /// Most micro-batches that stage `stage` of `stages` holds at once (global stages; notes of the schedule).
  std::function<double(int stage, int stages)> in_flight;
  int versions = 1;       ///< of weights that the schedule keeps; the fewest of any stage, the replay knows them all
  std::uint64_t seed = 1; ///< for strategies that draw
  bool drawn = false;     ///< one of many draws: by-hand gives the first guess of one person of many
  /// Replays a plan under the study's schedule, training and true costs. Without it a strategy that searches goes by
  /// estimate_iteration().
  std::function<Evaluation(const Plan&)> evaluate;
  int budget = 200;       ///< most plans that a strategy may have evaluated
  BalanceOptions balance; ///< of the strategy dynamic
  int state_cap = 6000;   ///< antichain states, docs/decisions/0004-state-cap.md
};

struct StrategyRow {
  std::string_view name, help;
  PlanResult (*split)(const PlanRequest& request);
  bool pipeline;         ///< one stage after another along the devices; false: placements of other shapes
  bool searches = false; ///< asks for replays, so that each schedule and number of micro-batches has its own plan
};
std::span<const StrategyRow> strategies();

/// The first operator of a plan whose device lacks its kernel, in words as of one stage; or "".
std::string missing_kernel(const Problem& problem, const Plan& plan);

/// The device that lacks most memory for a plan: with the schedule's counts where a named schedule can run the plan's
/// shape, with all micro-batches in flight otherwise.
std::optional<MemoryShortage> plan_shortage(const Problem& problem, const Plan& plan, int chunks,
                                            const std::function<double(int, int)>& in_flight, int versions,
                                            Dealing dealing = Dealing::rounds);

/// Splits, then checks the plan against memory and kernels: what comes back feasible fits.
PlanResult make_plan(const StrategyRow& strategy, const PlanRequest& request);

PlanResult split_single(const PlanRequest&);
PlanResult split_data_parallel(const PlanRequest&);
PlanResult split_framework(const PlanRequest&);
PlanResult split_uniform(const PlanRequest&);
PlanResult split_parameters(const PlanRequest&);
PlanResult split_block_partition(const PlanRequest&);
PlanResult split_capability(const PlanRequest&);
PlanResult split_capability_refined(const PlanRequest&);
PlanResult split_capability_calibrated(const PlanRequest&);
PlanResult split_by_hand(const PlanRequest&);
PlanResult split_antichain(const PlanRequest&);
PlanResult split_layered(const PlanRequest&);
PlanResult split_optimal(const PlanRequest&);
PlanResult split_piper(const PlanRequest&);
PlanResult split_amp(const PlanRequest&);
PlanResult split_earliest_finish(const PlanRequest&);
PlanResult split_earliest_finish_contiguous(const PlanRequest&);
PlanResult split_heft(const PlanRequest&);
PlanResult split_mcmc(const PlanRequest&);
PlanResult split_random(const PlanRequest&);
PlanResult split_best_of_random(const PlanRequest&);
PlanResult split_pipedream(const PlanRequest&);
PlanResult split_ideal(const PlanRequest&);
PlanResult split_ideal_linear(const PlanRequest&);
PlanResult split_dapple(const PlanRequest&);
PlanResult split_dynamic(const PlanRequest&);

} // namespace stagecraft
