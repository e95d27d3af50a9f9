// What stages between ideals take and keep, as differences of sums over ideals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/plan/estimate/plan_request.hpp"
#include "sim/strategy/dynamic_programming/antichains.hpp"
#include "sim/strategy/dynamic_programming/max_load/stage_load.hpp"
#include "sim/strategy/dynamic_programming/stage_borders.hpp"

namespace stagecraft {

/// Sums over each ideal, so that sums over a stage are differences.
struct IdealSums {
  std::vector<std::vector<double>> seconds; ///< [group][ideal], over operators that have a kernel
  std::vector<std::vector<int>> lacking;    ///< [group][ideal]
  std::vector<Activations> stash;
  std::vector<double> parameters, resident, input;
  std::vector<double> cut_bytes;              ///< [ideal]: of operators inside with a user outside
  std::vector<double> fixed, per_micro_batch; ///< memory of a stage of the ideal, without what crosses its borders
  std::vector<double> open_bytes;             ///< [ideal]: of crossing tensors with ends inside and outside
  std::vector<int> open_transfers;
  std::vector<double> left;  ///< [ideal]: least share of a group's whole work that is left outside
  BitRows open;              ///< [ideal]: those tensors
  BitRows ends;              ///< [tensor]: its operators
  std::vector<double> speed; ///< [group]: whole works per second
};

IdealSums ideal_sums(const PlanRequest& request, const std::vector<LoadGroup>& groups,
                     const std::vector<CrossingTensor>& tensors, const BitRows& ideals, const StageBorders& borders);

} // namespace stagecraft
