// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_costs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace stagecraft {
namespace {

std::vector<int> stage_of_operator(const Problem& problem, const Plan& plan) {
  std::vector<int> stage(problem.model.size(), -1);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (const OperatorId op : plan.stages[s].operators) {
      stage[op] = static_cast<int>(s);
    }
  }
  return stage;
}

struct Sums {
  double forward = 0, input = 0, weight = 0;
};

// Times of a share of the micro-batch; the whole micro-batch is in the tables of the problem.
Sums stage_times(const Problem& problem, const Stage& stage, int type, double share) {
  Sums sums;
  for (const OperatorId op : stage.operators) {
    if (share == 1) {
      sums.forward += problem.forward[type][op];
      sums.input += problem.backward_input[type][op];
      sums.weight += problem.backward_weight[type][op];
      continue;
    }
    const auto time =
        problem.cost.time(op, problem.platform.types[type], problem.samples * share, problem.training.precision);
    const double never = std::numeric_limits<double>::infinity();
    sums.forward += time ? time->forward.value : never;
    sums.input += time ? time->backward_input.value : never;
    sums.weight += time ? time->backward_weight.value : never;
  }
  return sums;
}

// The stages that need `op`'s output and do not make it, each once, ascending.
std::vector<int> target_stages(const Problem& problem, const std::vector<int>& stage_of, OperatorId op) {
  std::vector<int> targets;
  for (const OperatorId user : problem.model.successors[op]) {
    if (stage_of[user] != stage_of[op]) {
      targets.push_back(stage_of[user]);
    }
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

// Bytes that enter and leave each stage; fills the edges and cuts of `cost`.
struct Borders {
  std::vector<Bytes> incoming, outgoing;
};

Borders cross_borders(const Problem& problem, const std::vector<int>& stage_of, PlanCost& cost) {
  const std::size_t stages = cost.stages.size();
  Borders borders{std::vector<Bytes>(stages), std::vector<Bytes>(stages)};
  cost.cut.assign(stages - 1, Bytes{0});
  std::map<std::pair<int, int>, Bytes> crossing;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    const int home = stage_of[op];
    if (problem.model.predecessors[op].empty()) {
      borders.incoming[home] += problem.input_bytes();
    }
    const std::vector<int> targets = target_stages(problem, stage_of, op);
    const Bytes bytes = targets.empty() ? Bytes{0} : problem.output_bytes(op);
    borders.outgoing[home] += bytes;
    for (const int target : targets) {
      borders.incoming[target] += bytes;
      crossing[{home, target}] += bytes;
    }
    for (int boundary = home; !targets.empty() && boundary < targets.back(); ++boundary) {
      cost.cut[boundary] += bytes;
    }
  }
  for (const auto& [ends, bytes] : crossing) {
    cost.edges.push_back({ends.first, ends.second, bytes});
  }
  return borders;
}

StageCost cost_stage(const Problem& problem, const Stage& stage, Bytes incoming, Bytes outgoing) {
  double parameters = 0;
  Bytes resident;
  Bytes stash;
  for (const OperatorId op : stage.operators) {
    parameters += problem.model.operators[op].parameters;
    resident += Bytes{problem.model.operators[op].resident_bytes};
    stash += problem.stash_bytes(op);
  }
  StageCost cost;
  cost.gradients = Bytes{std::round(parameters * parameter_bytes(problem.training).gradient)};
  for (std::size_t replica = 0; replica < stage.devices.size(); ++replica) {
    const int type = problem.type_index(stage.devices[replica]);
    const double share = stage.share(replica);
    const Sums times = stage_times(problem, stage, type, share);
    cost.replicas.push_back(
        {.device = stage.devices[replica],
         .share = share,
         .forward = Seconds{times.forward},
         .backward_input = Seconds{times.input},
         .backward_weight = Seconds{times.weight},
         .recompute = Seconds{stage.recompute == Recompute::full ? times.forward : 0},
         .optimizer = optimizer_time(problem.training, parameters, problem.platform.types[type]),
         .memory = memory_of_stage(problem, {parameters, resident, stash * share, incoming * share, outgoing * share},
                                   stage.recompute)});
  }
  return cost;
}

} // namespace

PlanCost cost_plan(const Problem& problem, const Plan& plan) {
  PlanCost cost;
  cost.stages.resize(plan.stages.size());
  const Borders borders = cross_borders(problem, stage_of_operator(problem, plan), cost);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    cost.stages[s] = cost_stage(problem, plan.stages[s], borders.incoming[s], borders.outgoing[s]);
  }
  return cost;
}

} // namespace stagecraft
