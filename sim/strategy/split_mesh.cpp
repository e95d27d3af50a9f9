// Given degrees and nothing else: the layers as given, or in equal shares over the pipeline, as training frameworks
// split them by default.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/base/count_of.hpp"
#include "sim/strategy/first_plans.hpp"
#include "sim/workload/blocks.hpp"
#include "sim/workload/training/pipeline_layout.hpp"

namespace stagecraft {
namespace {

// Layers per stage. Those left over go one each to the stages in the middle, since the first and the last stage also
// have what stands outside the row: embedding and head.
std::vector<int> equal_shares(int layers, int stages) {
  std::vector<int> counts(stages, layers / stages);
  const int left = layers % stages;
  const int first = (stages - left) / 2;
  for (int i = 0; i < left; ++i) {
    ++counts[first + i];
  }
  return counts;
}

// The stages that the study gives.
PlanResult split_as_given(const PlanRequest& request, const PipelineLayout& layout) {
  const std::vector<DeviceId> devices = place_stages(request.devices, request.chunks, request.stage_placement);
  const std::size_t stages = layout.stages.size();
  if (stages != devices.size()) {
    return Infeasible{"training.parallel.layers has " + count_of(stages, "stage") + ", and the schedule runs " +
                      std::to_string(request.chunks) + " on each of " + count_of(request.devices.size(), "rank") +
                      "; allowed: a schedule that runs " + std::to_string(stages / request.devices.size())};
  }
  Plan plan;
  for (std::vector<OperatorId>& operators : stages_of(layout, request.problem.model)) {
    Stage stage{.operators = std::move(operators), .devices = {devices[plan.stages.size()]}};
    recompute_as_trained(request.problem, stage);
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

} // namespace

PlanResult split_mesh(const PlanRequest& request) {
  if (request.layers != nullptr) {
    return split_as_given(request, *request.layers);
  }
  const LayerRow row = layer_row_of(request.problem.model);
  if (row.layers.empty()) { // no row of like layers: operators are all there is to share out
    return split_uniform(request);
  }
  const int layers = static_cast<int>(row.layers.size());
  const std::vector<DeviceId> devices = place_stages(request.devices, request.chunks, request.stage_placement);
  const int stages = static_cast<int>(devices.size());
  if (stages > layers) {
    return Infeasible{std::to_string(layers) + " layers do not fill " + std::to_string(stages) +
                      " stages; allowed: at most " + std::to_string(layers) + " stages"};
  }
  Plan plan;
  const std::vector<int> counts = equal_shares(layers, stages);
  auto next = row.layers.begin();
  for (int s = 0; s < stages; ++s) {
    Stage stage{.devices = {devices[s]}};
    const auto add = [&](const std::vector<OperatorId>& operators) {
      stage.operators.insert(stage.operators.end(), operators.begin(), operators.end());
    };
    if (s == 0) {
      add(row.before);
    }
    for (int layer = 0; layer < counts[s]; ++layer) {
      add((next++)->operators);
    }
    if (s == stages - 1) {
      add(row.after);
    }
    std::sort(stage.operators.begin(), stage.operators.end());
    recompute_as_trained(request.problem, stage);
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

} // namespace stagecraft
