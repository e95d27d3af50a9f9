// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/ideal_pipeline.hpp"

#include <algorithm>
#include <limits>

#include "sim/plan/estimate.hpp"

namespace stagecraft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTie = 1e-9; // a candidate must be better by this share to replace the incumbent

// A[node][state]: the least bottleneck of a pipeline that covers the state's ideal and whose last stage is the node's.
class Search {
public:
  Search(const PlanRequest& request, const StateCosts& costs, const DeviceChoices& choices)
      : request_(request), costs_(costs), choices_(choices), states_(costs.parameters.size()) {}

  // With `total` stages in all and memory respected, or (total 0) any number and memory ignored.
  std::optional<IdealPipeline> run(int total, int exact_stages) {
    total_ = total;
    best_ = kNever;
    best_node_ = -1;
    value_.assign(choices_.nodes.size() * states_, kNever);
    from_.assign(choices_.nodes.size() * states_, {-1, -1});
    value_[0] = 0;
    for (std::size_t node = 0; node < choices_.nodes.size(); ++node) {
      const DeviceChoices::Node& here = choices_.nodes[node];
      if (total > 0 && here.stages >= total) {
        break;
      }
      for (const DeviceChoices::Next& next : here.next) {
        const bool may_end =
            (total == 0 || here.stages + 1 == total) && (exact_stages == 0 || here.stages + 1 == exact_stages);
        relax(static_cast<int>(node), next, may_end);
      }
    }
    if (best_node_ < 0) {
      return std::nullopt;
    }
    return trace();
  }

private:
  struct From {
    int node, state;
  };

  void relax(int node, const DeviceChoices::Next& next, bool may_end) {
    const DeviceId device = choices_.nodes[next.node].device;
    const int type = request_.problem.type_index(device);
    const auto& seconds = costs_.seconds[type];
    const auto& lacking = costs_.lacking[type];
    const double* here = value_.data() + static_cast<std::size_t>(node) * states_;
    double* there = value_.data() + static_cast<std::size_t>(next.node) * states_;
    From* from = from_.data() + static_cast<std::size_t>(next.node) * states_;
    const int last = static_cast<int>(states_) - 1;
    for (int k = 0; k < last; ++k) {
      double base = here[k];
      if (base < best_ && k > 0) {
        base = std::max(base, 2 * next.path.time(Bytes{costs_.cut_bytes[k]}).value);
      }
      if (base >= best_) {
        continue;
      }
      for (const std::int32_t j : costs_.above[k]) {
        const double value = std::max(base, seconds[j] - seconds[k]);
        if (value >= there[j] || value >= best_ || lacking[j] != lacking[k] || (j == last && !may_end) ||
            !fits(k, j, device, next.node)) {
          continue;
        }
        there[j] = value;
        from[j] = {node, k};
        if (j == last && value < best_ - kTie * std::max(1e-30, best_ < kNever ? best_ : 0)) {
          best_ = value;
          best_node_ = next.node;
        }
      }
    }
  }

  bool fits(int k, int j, DeviceId device, int node) const {
    if (total_ == 0) {
      return true;
    }
    const int stage = choices_.nodes[node].stages - 1;
    const Problem& problem = request_.problem;
    const double parameters = costs_.parameters[j] - costs_.parameters[k];
    const Bytes stash{costs_.stash_bytes[j] - costs_.stash_bytes[k]};
    const StageMemory memory = stage_memory(problem.training, parameters, stash, Bytes{costs_.cut_bytes[k]},
                                            Bytes{costs_.cut_bytes[j]}, problem.training.recompute);
    const Bytes limit = problem.platform.type_of(device).memory / request_.chunks;
    return memory.total(request_.in_flight(stage, total_), request_.versions) <= limit;
  }

  IdealPipeline trace() const {
    IdealPipeline found{{}, {}, best_};
    int node = best_node_;
    int state = static_cast<int>(states_) - 1;
    while (node > 0) {
      found.states.push_back(state);
      found.nodes.push_back(node);
      const From& from = from_[static_cast<std::size_t>(node) * states_ + state];
      node = from.node;
      state = from.state;
    }
    std::reverse(found.states.begin(), found.states.end());
    std::reverse(found.nodes.begin(), found.nodes.end());
    return found;
  }

  const PlanRequest& request_;
  const StateCosts& costs_;
  const DeviceChoices& choices_;
  std::size_t states_;
  int total_ = 0;
  double best_ = kNever;
  int best_node_ = -1;
  std::vector<double> value_;
  std::vector<From> from_;
};

bool plan_fits(const PlanRequest& request, const Plan& plan) {
  return !memory_shortage(request.problem, plan, cost_plan(request.problem, plan), request.in_flight, request.versions);
}

std::vector<DeviceId> node_devices(const DeviceChoices& choices, const IdealPipeline& pipeline) {
  std::vector<DeviceId> devices;
  for (const int node : pipeline.nodes) {
    devices.push_back(choices.nodes[node].device);
  }
  return devices;
}

} // namespace

std::optional<IdealPipeline> best_ideal_pipeline(const PlanRequest& request, const AntichainStates& states,
                                                 const StateCosts& costs, const DeviceChoices& choices,
                                                 int exact_stages) {
  Search search(request, costs, choices);
  const auto unlimited = search.run(0, exact_stages);
  if (!unlimited) {
    return std::nullopt;
  }
  if (plan_fits(request, make_ideal_plan(request, states, *unlimited, node_devices(choices, *unlimited)))) {
    return unlimited;
  }
  std::optional<IdealPipeline> best;
  for (int total = 1; total <= choices.most_stages; ++total) {
    if (exact_stages > 0 && total != exact_stages) {
      continue;
    }
    const auto found = search.run(total, exact_stages);
    if (found && (!best || found->bottleneck < best->bottleneck * (1 - kTie))) {
      best = found;
    }
  }
  return best;
}

Plan make_ideal_plan(const PlanRequest& request, const AntichainStates& states, const IdealPipeline& pipeline,
                     const std::vector<DeviceId>& devices) {
  Plan plan;
  int before = 0;
  for (std::size_t stage = 0; stage < pipeline.states.size(); ++stage) {
    Stage made;
    for (OperatorId op = 0; op < request.problem.model.size(); ++op) {
      if (has_bit(states.ideals.row(pipeline.states[stage]), op) && !has_bit(states.ideals.row(before), op)) {
        made.operators.push_back(op);
      }
    }
    made.devices = {devices[stage]};
    made.recompute = request.problem.training.recompute;
    plan.stages.push_back(std::move(made));
    before = pipeline.states[stage];
  }
  return plan;
}

DeviceChoices ordered_choices(const Problem& problem, const std::vector<DeviceId>& devices, bool all) {
  const int count = static_cast<int>(devices.size());
  DeviceChoices choices;
  choices.most_stages = count;
  choices.nodes.push_back({});
  // Node of "n stages, device i last": i runs over n-1 … count-1, or is n-1 when none may be left out.
  std::vector<std::vector<int>> node(count + 1, std::vector<int>(count, -1));
  for (int n = 1; n <= count; ++n) {
    for (int i = n - 1; i < (all ? n : count); ++i) {
      node[n][i] = static_cast<int>(choices.nodes.size());
      choices.nodes.push_back({devices[i], n, {}});
    }
  }
  for (int n = 0; n < count; ++n) {
    for (int i = n - 1; i < count; ++i) {
      const int from = n == 0 ? 0 : node[n][i];
      if (from < 0 || (n == 0 && i >= 0)) {
        continue;
      }
      for (int j = i + 1; j < count; ++j) {
        if (node[n + 1][j] >= 0) {
          const PathCost path = n == 0 ? PathCost{} : problem.path(devices[i], devices[j]);
          choices.nodes[from].next.push_back({node[n + 1][j], path});
        }
      }
    }
  }
  return choices;
}

std::vector<DeviceId> chunked_devices(const PlanRequest& request) {
  std::vector<DeviceId> devices;
  for (int chunk = 0; chunk < request.chunks; ++chunk) {
    devices.insert(devices.end(), request.devices.begin(), request.devices.end());
  }
  return devices;
}

} // namespace stagecraft
