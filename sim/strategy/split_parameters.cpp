// Stages of about equal parameter count, as DeepSpeed's `parameters` method does it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/strategy/dynamic_programming/cuts.hpp"
#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"
#include "sim/strategy/first_plans.hpp"

namespace stagecraft {

std::vector<int> balanced_cuts(std::span<const double> weights, int parts) {
  const int n = static_cast<int>(weights.size());
  std::vector<double> sum(n + 1, 0.0);
  for (int i = 0; i < n; ++i) {
    sum[i + 1] = sum[i] + weights[i];
  }
  // Cell (i, j): the first i layers in j parts, with the largest and smallest part of the best cut found.
  struct Cell {
    double largest = -kInfinity;
    double smallest = kInfinity;
    double spread = kInfinity;
    int cut = 0;
  };
  std::vector<std::vector<Cell>> cells(parts + 1, std::vector<Cell>(n + 1));
  for (int i = 0; i <= n; ++i) {
    cells[1][i] = {sum[i], sum[i], 0, 0};
  }
  for (int j = 2; j <= parts; ++j) {
    for (int i = 0; i <= n; ++i) {
      Cell& best = cells[j][i];
      for (int k = 0; k <= i; ++k) {
        const double part = sum[i] - sum[k];
        const double largest = std::max(cells[j - 1][k].largest, part);
        const double smallest = std::min(cells[j - 1][k].smallest, part);
        if (best.spread >= largest - smallest) { // the last cut wins ties
          best = {largest, smallest, largest - smallest, k};
        }
      }
    }
  }
  std::vector<int> bounds(parts + 1, 0);
  bounds[parts] = n;
  for (int j = parts; j > 1; --j) {
    bounds[j - 1] = cells[j][bounds[j]].cut;
  }
  return bounds;
}

namespace {

// Into so many parts, which are the same under every schedule.
struct ParameterCuts {
  std::map<int, std::vector<int>> of_parts;
};

const std::vector<int>& parameter_cuts(const PlanRequest& request, ParameterCuts& known, int parts) {
  std::vector<int>& bounds = known.of_parts[parts];
  if (bounds.empty()) {
    std::vector<double> parameters;
    for (const Operator& op : request.problem.model.operators) {
      parameters.push_back(op.parameters);
    }
    bounds = balanced_cuts(parameters, parts);
  }
  return bounds;
}

} // namespace

PlanResult split_parameters(const PlanRequest& request) {
  if (const std::string reason = too_many_stages(request); !reason.empty()) {
    return Infeasible{reason};
  }
  const std::vector<DeviceId> devices = chunked_devices(request);
  const auto known = kept_for<ParameterCuts>(request, [] { return ParameterCuts(); });
  const Plan plan =
      make_chain_plan(request, parameter_cuts(request, *known, static_cast<int>(devices.size())), devices);
  if (request.chunks > 1 && plan.stages.size() < devices.size()) {
    return Infeasible{"balancing parameters leaves " + std::to_string(devices.size() - plan.stages.size()) + " of " +
                      std::to_string(devices.size()) + " stages empty"};
  }
  return plan;
}

} // namespace stagecraft
