// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate/least_iteration.hpp"

#include <algorithm>

#include "sim/base/improves.hpp"

namespace stagecraft {
namespace {

// Seconds for a micro-batch, and on the way to it and back.
struct Least : LeastSeconds {
  double head = 0, tail = 0;
};

// By stage. A stage waits for those before it whose tensors it reads, and they for its gradients.
std::vector<Least> least_of_stages(const Problem& problem, const Plan& plan, bool splits_backward) {
  std::vector<int> stage_of(problem.model.size(), -1);
  std::vector<Least> stages;
  for (int s = 0; s < static_cast<int>(plan.stages.size()); ++s) {
    Least least{least_seconds(problem, plan.stages[s], splits_backward)};
    for (const OperatorId op : plan.stages[s].operators) {
      stage_of[op] = s;
      for (const OperatorId maker : problem.model.predecessors[op]) {
        if (const int from = stage_of[maker]; from >= 0 && from < s) {
          least.head = std::max(least.head, stages[from].head + stages[from].forward);
          least.tail = std::max(least.tail, stages[from].tail + stages[from].backward);
        }
      }
    }
    stages.push_back(least);
  }
  return stages;
}

} // namespace

LeastSeconds least_seconds(const Problem& problem, const Stage& stage, bool splits_backward) {
  LeastSeconds least;
  const int streams = stage.streams > 0 ? stage.streams : problem.training.streams;
  if (stage.devices.size() > 1 || streams > 1) {
    return least;
  }
  const auto type = static_cast<std::size_t>(problem.type_index(stage.devices.front()));
  for (const OperatorId op : stage.operators) {
    least.forward += problem.forward[type][op];
    least.backward += problem.backward_input[type][op];
    (splits_backward ? least.weight : least.backward) += problem.backward_weight[type][op];
  }
  return least;
}

double least_iteration(const Problem& problem, const Plan& plan, const LeastPace& pace) {
  if (!pace.one_home_for_each) {
    return 0;
  }
  const std::vector<Least> stages = least_of_stages(problem, plan, pace.splits_backward);
  std::vector<Least> devices(problem.platform.devices.size(), {{}, kInfinity, kInfinity});
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Least& device = devices[plan.stages[s].devices.front()];
    device.forward += stages[s].forward;
    device.backward += stages[s].backward;
    device.weight += stages[s].weight;
    device.head = std::min(device.head, stages[s].head);
    device.tail = std::min(device.tail, stages[s].tail);
  }
  double least = 0;
  for (const Least& device : devices) {
    const double both = problem.micro_batches * (device.forward + device.backward);
    const double weights = problem.micro_batches * device.weight;
    if (device.head < kInfinity) {
      least = std::max(least, pace.from_empty ? device.head + both + std::max(weights, device.tail) : both + weights);
    }
  }
  return least < kInfinity ? least : 0; // a kernel lacks: the plan says so itself
}

} // namespace stagecraft
