// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/dynamic_programming/piper_costs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/improves.hpp"
#include "sim/collective/collective.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"

namespace stagecraft {
namespace {

// The slowest path between any two of the devices, or between any two of one node.
PathCost slowest_path(const Problem& problem, const std::vector<DeviceId>& devices, bool within_nodes) {
  PathCost slowest;
  for (const DeviceId a : devices) {
    for (const DeviceId b : devices) {
      if (a != b && (!within_nodes || problem.platform.devices[a].node == problem.platform.devices[b].node)) {
        slowest = slowest_of(slowest, problem.path(a, b));
      }
    }
  }
  return slowest;
}

std::vector<int> types_of(const Problem& problem, const std::vector<DeviceId>& devices) {
  std::set<int> types;
  for (const DeviceId device : devices) {
    types.insert(problem.type_index(device));
  }
  return {types.begin(), types.end()};
}

// Whether the nodes can be divided into groups of `degree` devices without remainder; on a single node, whether one
// group fits.
bool divides_nodes(const Problem& problem, const std::vector<DeviceId>& devices, int degree) {
  std::map<int, int> count;
  for (const DeviceId device : devices) {
    ++count[problem.platform.devices[device].node];
  }
  if (count.size() == 1) {
    return degree <= static_cast<int>(devices.size());
  }
  return std::all_of(count.begin(), count.end(), [&](const auto& node) { return node.second % degree == 0; });
}

// The file's own configurations at a degree. Times on another device type scale as the cost model says.
PiperDegree given_degree(const Problem& problem, const std::vector<int>& types, int degree) {
  PiperDegree made{degree, {}};
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    auto& options = made.options.emplace_back();
    double scale = 0;
    double vanilla = 0;
    for (const int type : types) {
      const auto time = problem.cost.time_of_shard(op, problem.platform.types[type], problem.samples,
                                                   problem.training.precision, {degree});
      scale = std::max(scale, time ? (time->forward + time->backward_input + time->backward_weight).value : kInfinity);
    }
    for (const Configuration& one : problem.model.configurations[op]) {
      if (one.tensor_parallel == degree && (vanilla == 0 || !one.recompute)) {
        vanilla = one.seconds.value;
      }
    }
    for (Configuration one : problem.model.configurations[op]) {
      const bool forced = problem.recomputes(op);
      if (one.tensor_parallel == degree && std::isfinite(scale) && (one.recompute || !forced)) {
        one.seconds = vanilla > 0 ? one.seconds * (scale / vanilla) : one.seconds;
        options.push_back(std::move(one));
      }
    }
    std::stable_sort(options.begin(), options.end(),
                     [](const auto& a, const auto& b) { return a.recompute < b.recompute; });
  }
  return made;
}

// Configurations from the cost model. An operator may be recomputed only if its inputs, which then stay in memory, are
// smaller than its stash.
PiperDegree derived_degree(const Problem& problem, const std::vector<DeviceId>& devices, const std::vector<int>& types,
                           int degree, const TensorSplit& split) {
  const ModelGraph& model = problem.model;
  const Group group{degree, slowest_path(problem, devices, true)};
  const Bytes per_parameter = stage_memory(problem.training, 1, {}, {}, {}, Recompute::none).fixed(1);
  PiperDegree made{degree, {}};
  for (OperatorId op = 0; op < model.size(); ++op) {
    const RankShare& part = split.operators[op];
    OperatorTime slowest{};
    for (const int type : types) {
      const auto time = problem.cost.time_of_shard(op, problem.platform.types[type], problem.samples,
                                                   problem.training.precision, part.shard);
      slowest.forward = std::max(slowest.forward, time ? time->forward : Seconds{kInfinity});
      slowest.backward_input = std::max(slowest.backward_input, time ? time->backward_input : Seconds{kInfinity});
      slowest.backward_weight = std::max(slowest.backward_weight, time ? time->backward_weight : Seconds{kInfinity});
    }
    auto& options = made.options.emplace_back();
    made.forward.push_back(slowest.forward.value);
    if (!std::isfinite(slowest.forward.value)) {
      continue;
    }
    const Seconds backward = backward_seconds(slowest, part, group, 1);
    slowest.forward = forward_seconds(slowest, part, group, 1);
    made.forward.back() = slowest.forward.value;
    Bytes input = model.predecessors[op].empty() ? problem.input_bytes() : Bytes{0};
    for (const OperatorId before : model.predecessors[op]) {
      input += problem.output_bytes(before);
    }
    const double parameters = model.operators[op].parameters * part.parameters;
    const Bytes stash = problem.stash_bytes(op) * part.stash;
    Configuration one{.tensor_parallel = degree,
                      .seconds = slowest.forward + backward,
                      .parameters = Bytes{parameters * parameter_bytes(problem.training).weight},
                      .per_micro_batch = stash,
                      .resident = per_parameter * parameters + Bytes{model.operators[op].resident_bytes / degree}};
    const bool forced = problem.recomputes(op);
    if (!forced) {
      options.push_back(one);
    }
    if (forced || input < stash) {
      one.recompute = true;
      one.seconds += slowest.forward;
      one.per_micro_batch = forced ? Bytes{0} : input;
      one.resident += stash; // restored for one micro-batch at a time
      options.push_back(one);
    }
  }
  return made;
}

} // namespace

double PiperInstance::held(int s, int replicas) const {
  return given ? std::ceil(static_cast<double>(s) / replicas) : in_flight[s] / replicas;
}

bool PiperInstance::allows_replicas(int replicas) const {
  if (given) {
    return problem.micro_batches % replicas == 0;
  }
  return divides_samples(problem, replicas);
}

std::vector<double> piper_in_flight(const PlanRequest& request, int devices) {
  std::vector<double> in_flight(devices + 1, 0.0);
  const bool given = !request.problem.model.configurations.empty();
  for (int s = 1; s <= devices && !given; ++s) { // the s-th stage from the end, of any number of stages
    for (int stages = s; stages <= devices; ++stages) {
      in_flight[s] = std::max(in_flight[s], request.in_flight(stages - s, stages));
    }
  }
  return in_flight;
}

PiperInstance piper_instance(const PlanRequest& request, std::vector<DeviceId> devices) {
  const Problem& problem = request.problem;
  PiperInstance made{.problem = problem, .devices = std::move(devices)};
  made.given = !problem.model.configurations.empty();
  made.memory = kInfinity;
  for (const DeviceId device : made.devices) {
    made.memory = std::min(made.memory, problem.platform.type_of(device).memory.value);
  }
  made.seconds_per_byte = slowest_path(problem, made.devices, false).seconds_per_byte;
  const std::vector<int> types = types_of(problem, made.devices);
  std::set<int> degrees = request.groups ? std::set<int>{1} : std::set<int>{1, 2, 4, 8};
  if (made.given) {
    degrees.clear();
    for (const auto& configurations : problem.model.configurations) {
      for (const Configuration& one : configurations) {
        degrees.insert(one.tensor_parallel);
      }
    }
  }
  const std::vector<OperatorId> all = all_operators(problem.model);
  for (const int degree : degrees) {
    if (!divides_nodes(problem, made.devices, degree)) {
      continue;
    }
    if (made.given) {
      made.degrees.push_back(given_degree(problem, types, degree));
    } else if (const auto split = split_tensors(problem, all, {degree}); std::holds_alternative<TensorSplit>(split)) {
      made.degrees.push_back(derived_degree(problem, made.devices, types, degree, std::get<TensorSplit>(split)));
    }
  }
  made.in_flight = piper_in_flight(request, static_cast<int>(made.devices.size()));
  return made;
}

} // namespace stagecraft
