// dnn-partitioning's throughput planners (Tarnawski et al. 2020): the least max-load over all ideals, or over those
// along one order.
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "sim/base/improves.hpp"
#include "sim/strategy/dynamic_programming/contract_branches.hpp"
#include "sim/strategy/dynamic_programming/max_load/max_load.hpp"

namespace stagecraft {
namespace {

/// All ideals, ascending in size, or nothing if there are too many.
std::optional<BitRows> all_ideals(const ModelGraph& model) {
  const auto ideals = ideals_of(model.predecessors, kMostIdeals - 1);
  if (ideals.empty()) {
    return std::nullopt;
  }
  BitRows rows(static_cast<int>(ideals.size()), model.size());
  for (int row = 0; row < rows.rows(); ++row) {
    for (OperatorId op = 0; op < model.size(); ++op) {
      if (ideals[row][op] != 0) {
        set_bit(rows.row(row), op);
      }
    }
  }
  return rows;
}

BitRows prefixes(const std::vector<OperatorId>& order) {
  const int n = static_cast<int>(order.size());
  BitRows rows(n + 1, n);
  for (int k = 1; k <= n; ++k) {
    for (int i = 0; i < k; ++i) {
      set_bit(rows.row(k), order[i]);
    }
  }
  return rows;
}

PlanResult to_plan(LoadResult result) {
  if (!result.split) {
    return Infeasible{std::move(result.why_not)};
  }
  result.split->plan.objective = Objective{"max-load", Seconds{result.split->max_load}};
  return std::move(result.split->plan);
}

} // namespace

PlanResult split_ideal_linear(const PlanRequest& request) {
  return to_plan(least_max_load(request, prefixes(depth_first_order(request.problem.model)), kInfinity));
}

PlanResult split_ideal(const PlanRequest& request) {
  const std::optional<BitRows> ideals = all_ideals(request.problem.model);
  if (!ideals) {
    return Infeasible{"the model has more than " + std::to_string(kMostIdeals) + " ideals; use ideal-linear"};
  }
  // The split found along one order is a bound: it removes most pairs of ideals at once.
  LoadResult linear = least_max_load(request, prefixes(depth_first_order(request.problem.model)), kInfinity);
  if (ideals->rows() == request.problem.model.size() + 1) { // there is no other order
    return to_plan(std::move(linear));
  }
  LoadResult exact = least_max_load(request, *ideals, linear.split ? linear.split->max_load * (1 - kTie) : kInfinity);
  return to_plan(exact.split || !linear.split ? std::move(exact) : std::move(linear));
}

} // namespace stagecraft
