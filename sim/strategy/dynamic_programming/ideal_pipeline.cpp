// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate.hpp"
#include "sim/plan/shares.hpp"

namespace stagecraft {
namespace {

// A[node][state]: the least bottleneck of a pipeline that covers the state's ideal and whose last stage is the node's.
class IdealPipelineSearch {
public:
  IdealPipelineSearch(const PlanRequest& request, const AntichainStates& states, const StateCosts& costs,
                      const DeviceChoices& choices)
      : request_(request), ideals_(states.ideals), costs_(costs), choices_(choices), states_(costs.parameters.size()) {
    measure_work();
  }

  // The pipeline with the least bottleneck that is at most `at_most`: with `total` stages that fit in memory, or, if
  // `total` is 0, with any number of stages and no memory limit.
  std::optional<IdealPipeline> run(int total, int exact_stages, double at_most) {
    total_ = total;
    constexpr double kMost = std::numeric_limits<double>::max(); // finite: it is multiplied by 0
    constexpr double kLeast = std::numeric_limits<double>::min();
    best_ = std::min(at_most * (1 + kTie) + kLeast, kMost); // values below it count, 0 among them
    best_node_ = -1;
    value_.assign(choices_.nodes.size() * states_, kInfinity);
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

  // left_[state]: the least weighted work outside the state's ideal, sum_v min over types of speed * time. A pipeline
  // with stages of at most `best` seconds can do no more than best * speed of the devices left.
  // least_after_[type][state]: the least time of any state from there on; states grow, so it ends the inner loop early.
  void measure_work() {
    const Problem& problem = request_.problem;
    left_.assign(states_, 0.0);
    for (std::size_t state = 0; state < states_; ++state) {
      left_[state] = costs_.weighted.back() - costs_.weighted[state];
    }
    for (std::size_t type = 0; type < problem.platform.types.size(); ++type) {
      std::vector<double> least = costs_.seconds[type];
      for (std::size_t state = states_ - 1; state > 0; --state) {
        least[state - 1] = std::min(least[state - 1], least[state]);
      }
      least_after_.push_back(std::move(least));
    }
  }

  // upto_: its difference between two states is the memory of a stage between them, without its borders. after_: the
  // least of upto_ from a state on. left_bytes_: the least memory of all stages after a state. Without a memory limit
  // all are 0.
  void measure_memory(int stage) {
    upto_.assign(states_, 0.0);
    left_bytes_.assign(states_, 0.0);
    if (total_ == 0) {
      after_ = upto_;
      return;
    }
    const double held = request_.in_flight(stage, total_);
    double held_later = held;
    for (int later = stage + 1; later < total_; ++later) {
      held_later = std::min(held_later, request_.in_flight(later, total_));
    }
    const Bytes per_parameter =
        memory_of_stage(request_.problem, {.parameters = 1}, Recompute::none).fixed(request_.versions);
    for (std::size_t j = 0; j < states_; ++j) {
      upto_[j] =
          costs_.parameters[j] * per_parameter.value + costs_.resident_bytes[j] + costs_.stash[j].total(held).value;
      left_bytes_[j] = (costs_.parameters.back() - costs_.parameters[j]) * per_parameter.value +
                       costs_.resident_bytes.back() - costs_.resident_bytes[j] +
                       (costs_.stash.back() - costs_.stash[j]).total(held_later).value;
    }
    after_ = upto_;
    for (std::size_t j = states_ - 1; j > 0; --j) {
      after_[j - 1] = std::min(after_[j - 1], after_[j]);
    }
  }

  void relax(int node, const DeviceChoices::Next& next, bool may_end) {
    const DeviceChoices::Node& to = choices_.nodes[next.node];
    const int type = request_.problem.type_index(to.device);
    const auto& seconds = costs_.seconds[type];
    const auto& least_after = least_after_[type];
    const double* here = value_.data() + static_cast<std::size_t>(node) * states_;
    const double rounding = kTie * choices_.nodes.front().speed_left;
    const double slack = choices_.nodes[node].speed_left + rounding;
    const double next_slack = to.speed_left + rounding;
    const double limit = memory_of(to.device).value * (1 + kTie);
    const double limit_left = to.memory_left.value * (1 + kTie);
    const int last = static_cast<int>(states_) - 1;
    const int first_target = total_ > 0 && to.stages == total_ ? last : 0; // the last stage takes all that is left
    measure_memory(to.stages - 1);
    for (int k = 0; k < last; ++k) {
      double base = here[k];
      if (base >= best_ || left_[k] > best_ * slack) {
        continue;
      }
      if (k > 0) {
        base = std::max(base, 2 * next.path.time(Bytes{costs_.cut_bytes[k]}).value);
      }
      for (const std::int32_t j : costs_.above[k]) {
        if (base >= best_ || least_after[j] - seconds[k] >= best_ || after_[j] - upto_[k] > limit) {
          break;
        }
        const double value = std::max(base, seconds[j] - seconds[k]);
        if (value < best_ && j >= first_target && left_[j] <= best_ * next_slack && left_bytes_[j] <= limit_left &&
            (j < last || may_end)) {
          improve(node, k, next.node, j, value);
        }
      }
    }
  }

  void improve(int node, int k, int next, int j, double value) {
    const std::size_t cell = static_cast<std::size_t>(next) * states_ + j;
    const DeviceId device = choices_.nodes[next].device;
    const auto& lacking = costs_.lacking[request_.problem.type_index(device)];
    if (value >= value_[cell] || lacking[j] != lacking[k] || !fits(k, j, device, next)) {
      return;
    }
    value_[cell] = value;
    from_[cell] = {node, k};
    const bool complete = j + 1 == static_cast<int>(states_);
    if (complete && (best_node_ < 0 || improves(value, best_))) {
      best_ = value;
      best_node_ = next;
    }
  }

  Bytes memory_of(DeviceId device) const { return request_.problem.platform.type_of(device).memory / request_.chunks; }

  bool fits(int k, int j, DeviceId device, int node) const {
    if (total_ == 0) {
      return true;
    }
    const int stage = choices_.nodes[node].stages - 1;
    const Problem& problem = request_.problem;
    const double parameters = costs_.parameters[j] - costs_.parameters[k];
    const Bytes resident{costs_.resident_bytes[j] - costs_.resident_bytes[k]};
    const Activations stash = costs_.stash[j] - costs_.stash[k];
    const auto needs = [&](Bytes incoming, Bytes outgoing) {
      return memory_of_stage(problem, {parameters, resident, stash, incoming, outgoing},
                             problem.training.recompute.what)
          .total(request_.in_flight(stage, total_), request_.versions);
    };
    const Bytes input{costs_.input_bytes[j] - costs_.input_bytes[k]};
    // Tensors that bypass the stage cross both cuts, but not the stage's border.
    return needs(Bytes{costs_.cut_bytes[k]} + input, Bytes{costs_.cut_bytes[j]}) <= memory_of(device) ||
           (needs(input, Bytes{0}) <= memory_of(device) && exact_need(k, j, needs) <= memory_of(device));
  }

  template <class Needs> Bytes exact_need(int k, int j, const Needs& needs) const {
    std::vector<char> inside(request_.problem.model.size());
    for (std::size_t op = 0; op < inside.size(); ++op) {
      const int at = static_cast<int>(op);
      inside[op] = has_bit(ideals_.row(j), at) && !has_bit(ideals_.row(k), at) ? 1 : 0;
    }
    const Problem::Border border = request_.problem.border(inside);
    return needs(border.incoming, border.outgoing);
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
  const BitRows& ideals_;
  const StateCosts& costs_;
  const DeviceChoices& choices_;
  std::size_t states_;
  int total_ = 0;
  double best_ = kInfinity;
  int best_node_ = -1;
  std::vector<double> left_;
  std::vector<double> upto_, after_, left_bytes_;
  std::vector<std::vector<double>> least_after_;
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
                                                 int exact_stages, double at_most) {
  IdealPipelineSearch search(request, states, costs, choices);
  auto unlimited = search.run(0, exact_stages, at_most);
  if (!unlimited) {
    return std::nullopt;
  }
  if (plan_fits(request, make_ideal_plan(request, states, *unlimited, node_devices(choices, *unlimited)))) {
    return unlimited;
  }
  std::optional<IdealPipeline> best;
  for (int total = choices.most_stages; total > 0; --total) { // equal values with fewer stages replace what was found
    if (exact_stages == 0 || total == exact_stages) {
      const auto found = search.run(total, exact_stages, best ? best->bottleneck : at_most);
      best = found ? found : best;
    }
  }
  if (best) {
    best->memory_bound = true;
  }
  return best;
}

Infeasible why_no_pipeline(const PlanRequest& request, const AntichainStates& states, const StateCosts& costs,
                           const DeviceChoices& choices, int exact_stages) {
  const auto unlimited = IdealPipelineSearch(request, states, costs, choices).run(0, exact_stages, kInfinity);
  if (unlimited) {
    const Plan plan = make_ideal_plan(request, states, *unlimited, node_devices(choices, *unlimited));
    const auto shortage =
        memory_shortage(request.problem, plan, cost_plan(request.problem, plan), request.in_flight, request.versions);
    return {"no pipeline fits in memory; of the least bottleneck without that limit, " +
            (shortage ? to_text(*shortage, request.problem.platform) : "a chunk needs more than its share")};
  }
  if (const std::string lacks = able_devices(request).lacks; !lacks.empty()) {
    return {"no pipeline over these devices finds every kernel: " + lacks};
  }
  return {"the model has too few operators for " + std::to_string(exact_stages) + " stages"};
}

std::string too_many_devices(const PlanRequest& request) {
  const std::size_t stages = request.devices.size() * request.chunks;
  return stages <= kMostPipelineDevices
             ? ""
             : std::to_string(stages) +
                   " stages to choose from are too many for the dynamic program; allowed: at most " +
                   std::to_string(kMostPipelineDevices);
}

double work_of(const DeviceChoices& choices, const StateCosts& costs) {
  double edges = 0;
  for (const DeviceChoices::Node& node : choices.nodes) {
    edges += static_cast<double>(node.next.size());
  }
  return edges * static_cast<double>(costs.pairs);
}

TypeSpeeds type_speeds(const Problem& problem, const StateCosts& costs) {
  TypeSpeeds speeds;
  for (std::size_t type = 0; type < problem.platform.types.size(); ++type) {
    const double whole = costs.seconds[type].back();
    speeds.of_type.push_back(whole > 0 ? 1 / whole : 0);
  }
  return speeds;
}

Plan make_ideal_plan(const PlanRequest& request, const AntichainStates& states, const IdealPipeline& pipeline,
                     const std::vector<DeviceId>& devices) {
  Plan plan{.memory_bound = pipeline.memory_bound};
  int before = 0;
  for (std::size_t stage = 0; stage < pipeline.states.size(); ++stage) {
    Stage made;
    for (OperatorId op = 0; op < request.problem.model.size(); ++op) {
      if (has_bit(states.ideals.row(pipeline.states[stage]), op) && !has_bit(states.ideals.row(before), op)) {
        made.operators.push_back(op);
      }
    }
    made.devices = {devices[stage]};
    recompute_as_trained(request.problem, made);
    plan.stages.push_back(std::move(made));
    before = pipeline.states[stage];
  }
  return plan;
}

DeviceChoices ordered_choices(const Problem& problem, const TypeSpeeds& speeds, const std::vector<DeviceId>& devices,
                              bool all) {
  const int count = static_cast<int>(devices.size());
  const std::vector<int> class_of = all ? std::vector<int>() : device_classes(problem, devices).of;
  DeviceChoices choices;
  choices.most_stages = count;
  std::vector<double> speed(count + 1, 0.0); // speed of the devices from i on
  std::vector<Bytes> memory(count + 1);
  for (int i = count - 1; i >= 0; --i) {
    speed[i] = speed[i + 1] + speeds.of(problem, devices[i]);
    memory[i] = memory[i + 1] + problem.platform.type_of(devices[i]).memory;
  }
  choices.nodes.push_back({-1, 0, speed[0], memory[0], {}});
  // Node of "n stages, device i last": i runs over n-1 … count-1, or is n-1 if no device may be left out.
  std::vector<std::vector<int>> node(count + 1, std::vector<int>(count, -1));
  for (int n = 1; n <= count; ++n) {
    for (int i = n - 1; i < (all ? n : count); ++i) {
      node[n][i] = static_cast<int>(choices.nodes.size());
      choices.nodes.push_back({devices[i], n, speed[i + 1], memory[i + 1], {}});
    }
  }
  for (int n = 0; n < count; ++n) {
    for (int i = n - 1; i < count; ++i) {
      const int from = n == 0 ? 0 : node[n][i];
      if (from < 0 || (n == 0 && i >= 0)) {
        continue;
      }
      for (int j = i + 1; j < count; ++j) {
        const bool left_out_before =
            !all && std::find(class_of.begin() + i + 1, class_of.begin() + j, class_of[j]) != class_of.begin() + j;
        if (node[n + 1][j] >= 0 && !left_out_before) {
          const PathCost path = n == 0 ? PathCost{} : problem.path(devices[i], devices[j]);
          choices.nodes[from].next.push_back({node[n + 1][j], path});
        }
      }
    }
  }
  return choices;
}

std::vector<DeviceId> chunked_devices(const PlanRequest& request) {
  return place_stages(request.devices, request.chunks, request.stage_placement);
}

} // namespace stagecraft
