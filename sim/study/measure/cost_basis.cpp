// SPDX-License-Identifier: Apache-2.0
#include "sim/study/measure/cost_basis.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "sim/cost/alike_times.hpp"

namespace stagecraft {
namespace {

using Shares = decltype(CostBasis::shares);

// Seconds of a stage's pass by what they rest on, scaled to add up to 1.
class StageShares {
public:
  StageShares(StudyCosts& costs, const Prepared& prepared)
      : costs_(costs), prepared_(prepared), problem_(costs.problem(prepared.run.micro_batches)) {}

  const Shares& of(const Work& work, DeviceId device) {
    const int type = costs_.study().platform.devices[device].type;
    const double samples = problem_.samples * share_of(prepared_.plan.stages[work.stage], device);
    const auto [entry, added] = known_.try_emplace({work.stage, type, work.kind, samples});
    if (added) {
      entry->second = make(work, type, samples);
    }
    return entry->second;
  }

private:
  // Seconds of an operator's passes, and what they rest on.
  struct OperatorBasis {
    OperatorTime time;
    OperatorError error;
  };

  // The part of a micro-batch that the device's replica runs.
  static double share_of(const Stage& stage, DeviceId device) {
    const auto place = std::find(stage.devices.begin(), stage.devices.end(), device) - stage.devices.begin();
    return stage.share(static_cast<std::size_t>(place) / static_cast<std::size_t>(stage.tensor_parallel));
  }

  OperatorBasis basis_of(OperatorId op, int type, double samples) {
    if (samples == problem_.samples) { // known already
      return {{Seconds{problem_.forward[type][op]}, Seconds{problem_.backward_input[type][op]},
               Seconds{problem_.backward_weight[type][op]}},
              costs_.errors(prepared_.run.micro_batches, type)[op]};
    }
    if (first_alike_.empty()) {
      first_alike_ = first_alike(problem_.cost, problem_.model.size());
    }
    const auto [entry, added] = bases_.try_emplace({first_alike_[op], type, samples});
    if (added) {
      const DeviceType& device = costs_.study().platform.types[type];
      const Precision precision = problem_.training.precision;
      entry->second = {problem_.cost.time(op, device, samples, precision).value_or(OperatorTime{}),
                       problem_.cost.error(op, device, samples, precision)};
    }
    return entry->second;
  }

  Shares make(const Work& work, int type, double samples) {
    const Stage& stage = prepared_.plan.stages[work.stage];
    const bool backward = work.kind == TaskKind::backward;
    Shares shares{};
    const auto add = [&](Seconds seconds, const CostError& error) {
      shares[static_cast<std::size_t>(error.source)] += seconds.value;
    };
    for (const OperatorId op : stage.operators) {
      const auto [time, error] = basis_of(op, type, samples);
      if (work.kind == TaskKind::forward || (work.kind == TaskKind::recompute && stage.recomputes(op))) {
        add(time.forward, error.forward);
      }
      if (backward) {
        add(time.backward_input, error.backward_input);
      }
      if (work.kind == TaskKind::weight || (backward && !prepared_.schedule.splits_backward)) {
        add(time.backward_weight, error.backward_weight);
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
  std::vector<OperatorId> first_alike_;                                // once somebody asks
  std::map<std::tuple<OperatorId, int, double>, OperatorBasis> bases_; // by the first alike, type and samples
  std::map<std::tuple<int, int, TaskKind, double>, Shares> known_;     // by stage, type, kind and samples
};

} // namespace

std::vector<CostBasis> cost_basis_of(StudyCosts& costs, const Prepared& prepared) {
  const TaskGraph& graph = *prepared.graph;
  const Platform& platform = costs.study().platform;
  const std::vector<std::int32_t> times = graph.tasks_per_work(); // that each work is done in an iteration
  StageShares shares(costs, prepared);
  std::map<int, CostBasis> of_type;
  for (std::size_t index = 0; index < graph.works.size(); ++index) {
    const Work& work = graph.works[index];
    if (!work.computes() || work.kind > TaskKind::recompute || times[index] == 0) {
      continue;
    }
    const DeviceId device = graph.devices[work.device];
    const int type = platform.devices[device].type;
    CostBasis& basis = of_type.try_emplace(type, CostBasis{.type = platform.types[type].name}).first->second;
    const int devices = graph.stands_for(static_cast<std::size_t>(work.device));
    const double seconds = devices * (times[index] * work.seconds.value);
    basis.seconds += seconds;
    const Shares& of_stage = shares.of(work, device);
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
