// SPDX-License-Identifier: Apache-2.0
#include "sim/study/cost_basis.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace stagecraft {
namespace {

using Shares = decltype(CostBasis::shares);

// Seconds of a stage's pass by what they rest on, scaled to add up to 1.
class StageShares {
public:
  StageShares(StudyCosts& costs, const Prepared& prepared)
      : costs_(costs), prepared_(prepared), problem_(costs.problem(prepared.run.micro_batches)) {}

  const Shares& of(const Work& work, int type) {
    const auto [entry, added] = known_.try_emplace({work.stage, type, work.kind});
    if (added) {
      entry->second = make(work, type);
    }
    return entry->second;
  }

private:
  Shares make(const Work& work, int type) {
    const std::vector<OperatorError>& errors = costs_.errors(prepared_.run.micro_batches, type);
    const Stage& stage = prepared_.plan.stages[work.stage];
    const bool backward = work.kind == TaskKind::backward;
    Shares shares{};
    const auto add = [&](const std::vector<std::vector<double>>& seconds, OperatorId op, const CostError& error) {
      shares[static_cast<std::size_t>(error.source)] += seconds[type][op];
    };
    for (const OperatorId op : stage.operators) {
      if (work.kind == TaskKind::forward || (work.kind == TaskKind::recompute && stage.recomputes(op))) {
        add(problem_.forward, op, errors[op].forward);
      }
      if (backward) {
        add(problem_.backward_input, op, errors[op].backward_input);
      }
      if (work.kind == TaskKind::weight || (backward && !prepared_.schedule.splits_backward)) {
        add(problem_.backward_weight, op, errors[op].backward_weight);
      }
    }
    double whole = 0;
    for (const double share : shares) {
      whole += share;
    }
    for (double& share : shares) {
      share = whole > 0 ? share / whole : 0;
    }
    return shares;
  }

  StudyCosts& costs_;
  const Prepared& prepared_;
  const Problem& problem_;
  std::map<std::tuple<int, int, TaskKind>, Shares> known_;
};

} // namespace

std::vector<CostBasis> cost_basis_of(StudyCosts& costs, const Prepared& prepared) {
  const TaskGraph& graph = *prepared.graph;
  const Platform& platform = costs.study().platform;
  std::vector<int> times(graph.works.size(), 0); // that each work is done in an iteration
  for (const std::int32_t work : graph.work) {
    ++times[work];
  }
  StageShares shares(costs, prepared);
  std::map<int, CostBasis> of_type;
  for (std::size_t index = 0; index < graph.works.size(); ++index) {
    const Work& work = graph.works[index];
    if (!work.computes() || work.kind > TaskKind::recompute || times[index] == 0) {
      continue;
    }
    const int type = platform.devices[graph.devices[work.device]].type;
    CostBasis& basis = of_type.try_emplace(type, CostBasis{.type = platform.types[type].name}).first->second;
    const double seconds = times[index] * work.seconds.value;
    basis.seconds += seconds;
    const Shares& of_stage = shares.of(work, type);
    for (std::size_t source = 0; source < of_stage.size(); ++source) {
      basis.shares[source] += seconds * of_stage[source];
    }
  }
  std::vector<CostBasis> bases;
  for (auto& [type, basis] : of_type) {
    for (double& share : basis.shares) {
      share = basis.seconds > 0 ? share / basis.seconds : 0;
    }
    bases.push_back(std::move(basis));
  }
  return bases;
}

} // namespace stagecraft
