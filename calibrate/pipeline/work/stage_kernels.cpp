// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/work/stage_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace stagecraft::pipeline {
namespace {

using Runs = std::vector<cpu::KernelRun>;

// A shape for `elements` elements, in rows of 1024.
KernelShape rows_of(double elements) {
  constexpr double kColumns = 1024;
  const double columns = std::clamp(elements, 1.0, kColumns);
  return {std::ceil(std::max(1.0, elements) / columns), columns};
}

// The optimiser's step: Adam, or for SGD one addition to the weights, and with momentum another one before.
Runs step(const Stage& stage, const ModelGraph& model, const Training& training) {
  double parameters = 0;
  for (const OperatorId op : stage.operators) {
    parameters += model.operators[op].parameters;
  }
  if (parameters == 0) {
    return {};
  }
  const bool adam = training.optimizer->states > 1;
  return {{{adam ? KernelOp::adam : KernelOp::add, KernelPass::forward, Precision::fp32, rows_of(parameters)},
           adam ? 1 : 1 + static_cast<int>(training.optimizer->states)}};
}

// The micro-batch that kernels run on.
struct KernelBatch {
  double samples = 1;
  Precision precision = Precision::fp32;
};

void append(Runs& runs, const Operator& op, KernelPass pass, const KernelBatch& batch) {
  const Runs more = cpu::kernels_of_pass(op, pass, batch.samples, batch.precision);
  runs.insert(runs.end(), more.begin(), more.end());
}

Runs backward(const Stage& stage, const ModelGraph& model, const KernelBatch& batch, bool input, bool weight) {
  Runs runs;
  for (auto op = stage.operators.rbegin(); op != stage.operators.rend(); ++op) {
    if (input) {
      append(runs, model.operators[*op], KernelPass::backward_input, batch);
    }
    if (weight) {
      append(runs, model.operators[*op], KernelPass::backward_weight, batch);
    }
  }
  return runs;
}

Runs forward(const Stage& stage, const ModelGraph& model, const KernelBatch& batch, bool again) {
  Runs runs;
  for (const OperatorId op : stage.operators) {
    if (!again || stage.recomputes(op)) {
      append(runs, model.operators[op], KernelPass::forward, batch);
    }
  }
  return runs;
}

} // namespace

std::vector<Runs> kernels_of_works(const TaskGraph& graph, const Plan& plan, const ModelGraph& model,
                                   const Training& training, double samples, Precision precision) {
  const bool splits = std::any_of(graph.works.begin(), graph.works.end(),
                                  [](const Work& work) { return work.kind == TaskKind::weight; });
  std::vector<Runs> kernels;
  for (const Work& work : graph.works) {
    Runs& runs = kernels.emplace_back();
    if (!work.computes()) {
      continue;
    }
    const Stage& stage = plan.stages.at(work.stage);
    if (stage.tensor_parallel > 1) {
      throw std::invalid_argument("stage " + std::to_string(work.stage) +
                                  " is computed by several devices together; allowed: tensor_parallel 1");
    }
    const auto device = std::find(stage.devices.begin(), stage.devices.end(), graph.devices[work.device]);
    const double share = samples * stage.share(static_cast<std::size_t>(device - stage.devices.begin()));
    const KernelBatch batch{std::max(1.0, std::round(share)), precision};
    switch (work.kind) {
    case TaskKind::forward:
    case TaskKind::recompute:
      runs = forward(stage, model, batch, work.kind == TaskKind::recompute);
      break;
    case TaskKind::backward:
      runs = backward(stage, model, batch, true, !splits);
      break;
    case TaskKind::weight:
      runs = backward(stage, model, batch, false, true);
      break;
    case TaskKind::optimizer:
      runs = step(stage, model, training);
      break;
    default:
      break;
    }
  }
  return kernels;
}

std::vector<double> speeds_of(const TaskGraph& graph, const Platform& platform) {
  constexpr auto kSingle = static_cast<std::size_t>(Precision::fp32);
  std::vector<double> speeds;
  double fastest = 0;
  for (const DeviceId device : graph.devices) {
    speeds.push_back(platform.type_of(device).peak[kSingle].value_or(FlopsPerSecond{0}).value);
  }
  for (std::size_t device = 0; device < platform.devices.size(); ++device) {
    const auto peak = platform.type_of(static_cast<DeviceId>(device)).peak[kSingle];
    fastest = std::max(fastest, peak ? peak->value : 0);
  }
  for (double& speed : speeds) {
    speed = speed > 0 ? speed / fastest : 1;
  }
  return speeds;
}

} // namespace stagecraft::pipeline
