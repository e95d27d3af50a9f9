// Strategies: how a model is split over devices. One file each, one row each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "sim/plan/estimate/plan_request.hpp"

namespace stagecraft {

/// For how many devices a strategy plans at most, and what takes too long or too much memory beyond.
struct DeviceLimit {
  int most = 100'000;
  std::string_view why = "no platform has more";
};

/// A strategy as users name it.
struct StrategyRow {
  std::string_view name, help;
  PlanResult (*split)(const PlanRequest& request);
  bool pipeline = false;    ///< one stage after another along the devices; false: placements of other shapes
  bool over_groups = false; ///< of other shapes, over groups of devices, too, where training.parallel gives degrees
  bool searches = false;    ///< asks for replays, so that each schedule and number of micro-batches has its own plan
  DeviceLimit devices = {};
  bool at_every_count = false; ///< the plain choice beside every split: a comparison also tries it at numbers of
                               ///< micro-batches that it does not list (Training::more_micro_batches)
  /// The strategy that makes the same plan of a model whose operators have only one order; "": none.
  std::string_view in_one_order = {};
  bool takes_degrees = false; ///< splits by the degrees of training.parallel, and is part of `all` only where these are
  bool reference = false;     ///< tries all other strategies, so it is no part of `all` and only runs where it is named

  /// Whether it has a plan where training.parallel gives degrees.
  bool keeps_degrees() const { return pipeline || over_groups; }
};
std::span<const StrategyRow> strategies();

/// The strategy to ask for this one's plan on so many devices: itself, or its `in_one_order` where that makes the same
/// plan. Questions to both are then one question.
const StrategyRow& planner_of(const StrategyRow& strategy, const ModelGraph& model, std::size_t devices);

/// Refuses more devices than the row plans for. Splits, then checks the plan against memory and kernels, so a plan that
/// comes back fits.
PlanResult make_plan(const StrategyRow& strategy, const PlanRequest& request);

} // namespace stagecraft
