// Given degrees and nothing else: the layers as given, or in equal shares over the pipeline, as training frameworks
// split them by default, or so that the slowest stage takes least time.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>

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

// Whole layers, so that the slowest stage takes the fewest seconds; of these shares the most equal ones, by the squares
// of their seconds; of equal ones those with more layers behind, as stages in front hold more micro-batches. By dynamic
// programming over stages and layers.
class SharesByTime {
public:
  SharesByTime(const Problem& problem, const LayerRow& row, const std::vector<DeviceId>& devices)
      : layers_(row.layers.size()), stages_(devices.size()) {
    for (const DeviceId device : devices) {
      const int type = problem.type_index(device);
      const auto seconds = [&](const std::vector<OperatorId>& operators) {
        return std::accumulate(operators.begin(), operators.end(), 0.0,
                               [&](double sum, OperatorId op) { return sum + problem.seconds(type, op); });
      };
      std::vector<double>& sums = sums_.emplace_back(1, 0.0);
      for (const Block& layer : row.layers) {
        sums.push_back(sums.back() + seconds(layer.operators));
      }
      before_ = sums_.size() == 1 ? seconds(row.before) : before_;
      after_ = seconds(row.after); // on the last device
    }
  }

  std::vector<int> shares() {
    const double slowest = least(kNever, [](double sum, double seconds) { return std::max(sum, seconds); });
    least(slowest, [](double sum, double seconds) { return sum + seconds * seconds; });
    std::vector<int> counts(stages_);
    std::size_t left = layers_;
    for (std::size_t stage = stages_; stage-- > 0;) {
      counts[stage] = static_cast<int>(left - first_[stage][left]);
      left = first_[stage][left];
    }
    counts.front() += static_cast<int>(left); // where a device lacks a kernel, any shares will do
    return counts;
  }

private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  double seconds(std::size_t stage, std::size_t first, std::size_t last) const {
    return sums_[stage][last] - sums_[stage][first] + (stage == 0 ? before_ : 0) + (stage == stages_ - 1 ? after_ : 0);
  }

  // The least that stages of at most `limit` seconds come to, joined one by one; each has a layer.
  template <class Join> double least(double limit, const Join& join) {
    std::vector<double> in_front(layers_ + 1, kNever); // [layers]
    in_front.front() = 0;
    first_.assign(stages_, std::vector<std::size_t>(layers_ + 1, 0));
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      std::vector<double> up_to(layers_ + 1, kNever);
      for (std::size_t last = stage + 1; last <= layers_; ++last) {
        first_[stage][last] = last - 1; // even if none of these devices can
        for (std::size_t first = stage; first < last; ++first) {
          const double own = seconds(stage, first, last);
          const double sum = own <= limit * (1 + 1e-12) ? join(in_front[first], own) : kNever;
          if (sum < up_to[last]) {
            up_to[last] = sum;
            first_[stage][last] = first;
          }
        }
      }
      in_front = std::move(up_to);
    }
    return in_front.back();
  }

  std::size_t layers_, stages_;
  std::vector<std::vector<double>> sums_; // [stage][layers]: seconds of the first so many
  double before_ = 0, after_ = 0;
  std::vector<std::vector<std::size_t>> first_; // [stage][layers]: where the stage that ends there begins
};

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
  const bool by_time = request.layers != nullptr && request.layers->by_time();
  if (request.layers != nullptr && !by_time) {
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
  const std::vector<int> counts =
      by_time ? SharesByTime(request.problem, row, devices).shares() : equal_shares(layers, stages);
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
