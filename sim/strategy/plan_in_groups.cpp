// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/plan_in_groups.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/count_of.hpp"
#include "sim/base/divisors.hpp"
#include "sim/collective/collective.hpp"
#include "sim/collective/rank_map.hpp"
#include "sim/plan/check_plan.hpp"
#include "sim/plan/shares.hpp"
#include "sim/plan/tensor_parallel.hpp"

namespace stagecraft {
namespace {

/// The devices of each rank of the pipeline, replica by replica, and the one of each that stands for it.
struct Groups {
  Mesh mesh;
  std::vector<double> shares; // of the replicas; empty: equal ones
  std::vector<std::vector<DeviceId>> devices;
  std::vector<DeviceId> leader;

  /// How a rank's devices share operators.
  TensorAxis axis(int rank) const {
    const RankDegrees degrees = mesh.rank(rank);
    return {degrees.tensor, degrees.sequence, degrees.tensor > 1 ? mesh.tensor_rule : TensorRule::megatron};
  }

  int of_leader(DeviceId device) const {
    return static_cast<int>(std::find(leader.begin(), leader.end(), device) - leader.begin());
  }
};

// The slowest of the devices at the whole model, the first of those alike; one that lacks a kernel is slowest.
DeviceId slowest_device(const Problem& problem, const std::vector<DeviceId>& devices) {
  const auto seconds = [&](DeviceId device) { return problem.prefix.seconds[problem.type_index(device)].back(); };
  return *std::max_element(devices.begin(), devices.end(),
                           [&](DeviceId a, DeviceId b) { return seconds(a) < seconds(b); });
}

Groups make_groups(const PlanRequest& request, const Mesh& mesh) {
  Groups groups{.mesh = mesh};
  for (int rank = 0; rank < mesh.pipeline; ++rank) {
    auto& devices = groups.devices.emplace_back();
    for (int replica = 0; replica < mesh.data; ++replica) {
      for (int tensor = 0; tensor < mesh.rank(rank).tensor; ++tensor) {
        devices.push_back(request.devices[mesh.place(rank, replica, tensor)]);
      }
    }
    groups.leader.push_back(slowest_device(request.problem, devices));
  }
  return groups;
}

std::vector<DeviceId> devices_of(const Groups& groups) {
  std::vector<DeviceId> all;
  for (const std::vector<DeviceId>& devices : groups.devices) {
    all.insert(all.end(), devices.begin(), devices.end());
  }
  return all;
}

// "" if every replica gets whole samples of every micro-batch.
std::string batch_defect(const Problem& problem, int replicas) {
  const int batch = problem.training.global_batch;
  if (problem.divisible_at_will || replicas == 1) {
    return "";
  }
  if (batch % replicas != 0) {
    const int below = batch / replicas * replicas;
    return "a global batch of " + count_of(batch, "sample") + " does not divide among " + std::to_string(replicas) +
           " replicas; nearest that do: " + (below > 0 ? std::to_string(below) + " or " : "") +
           std::to_string(below + replicas);
  }
  if (batch / replicas % problem.micro_batches != 0) {
    return std::to_string(problem.micro_batches) + " micro-batches do not divide the " +
           count_of(batch / replicas, "sample") + " of each of " + std::to_string(replicas) +
           " replicas; nearest that do: " + nearest_divisors(batch / replicas, problem.micro_batches);
  }
  return "";
}

/// Times of a device's part of each operator for one replica's micro-batch, collectives of its tensor group included.
class GroupCost final : public CostModel {
public:
  GroupCost(const Problem& problem, const TensorSplit& split, const Groups& groups)
      : problem_(problem), split_(split), unlike_(problem.platform.types.size()) {
    std::set<std::pair<int, std::vector<int>>> seen; // type, and how a group's devices lie
    for (std::size_t rank = 0; rank < groups.devices.size(); ++rank) {
      const int type = problem.type_index(groups.leader[rank]);
      std::vector<Group>& unlike = unlike_[type];
      for (auto first = groups.devices[rank].begin(); first != groups.devices[rank].end();
           first += groups.mesh.tensor) {
        const std::vector<DeviceId> devices(first, first + groups.mesh.tensor);
        if (!seen.insert({type, lie_of(devices, problem.router)}).second) {
          continue;
        }
        Group one = tensor_group(problem, devices);
        if (std::none_of(unlike.begin(), unlike.end(),
                         [&](const Group& known) { return figures_of(known) == figures_of(one); })) {
          unlike.push_back(std::move(one));
        }
      }
    }
  }

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    const RankShare& share = split_.operators[op];
    const std::vector<Group>& unlike = unlike_[&type - problem_.platform.types.data()];
    if (unlike.empty() || unlike.front().ranks == 1) {
      return problem_.cost.time(op, type, samples, precision);
    }
    std::optional<OperatorTime> time = problem_.cost.time_of_shard(op, type, samples, precision, share.shard);
    if (time) {
      Seconds forward, backward;
      for (const Group& group : unlike) {
        const double part = samples / problem_.samples;
        forward = std::max(forward, forward_wait(share, group, part));
        backward = std::max(backward, backward_seconds(*time, share, group, part));
      }
      time->forward += forward;
      time->backward_input = std::max(time->backward_input, backward - time->backward_weight);
    }
    return time;
  }

  std::optional<LeastTime> least_time(OperatorId op, const DeviceType& type, Precision precision,
                                      const AnyPart& part) const override {
    return least_of_whole(*this, op, type, precision, part);
  }

  OperatorError error(OperatorId op, const DeviceType& type, double samples, Precision precision) const override {
    return problem_.cost.error(op, type, samples, precision);
  }

private:
  const Problem& problem_;
  const TensorSplit& split_;
  std::vector<std::vector<Group>> unlike_; // [device type]: the tensor groups that such a device stands for
};

// The model with each operator as one rank of a tensor group has it.
ModelGraph as_a_rank_has_it(ModelGraph model, const TensorSplit& split, int degree) {
  for (OperatorId op = 0; op < model.size(); ++op) {
    Operator& what = model.operators[op];
    const RankShare& share = split.operators[op];
    what.parameters *= share.parameters;
    what.stash_elements *= share.stash;
    what.weight_elements *= what.weight_elements > 0 ? share.weight_stash : 1;
    what.output_elements *= split.borders;
    what.resident_bytes /= degree;
  }
  model.input_elements *= split.borders;
  return model;
}

Plan with_all_devices(Plan plan, const Groups& groups) {
  for (Stage& stage : plan.stages) {
    std::vector<DeviceId> devices;
    std::vector<double> shares;
    const TensorAxis axis = groups.axis(groups.of_leader(stage.devices.front()));
    for (std::size_t place = 0; place < stage.devices.size(); ++place) {
      const auto& group = groups.devices[groups.of_leader(stage.devices[place])];
      devices.insert(devices.end(), group.begin(), group.end());
      if (!stage.shares.empty()) {
        shares.insert(shares.end(), groups.mesh.data, stage.shares[place] / groups.mesh.data);
      }
    }
    stage.devices = std::move(devices);
    stage.shares = std::move(shares);
    if (!groups.shares.empty()) {
      stage.shares = groups.shares;
    }
    stage.tensor_parallel = axis.degree;
    stage.sequence_parallel = axis.sequence;
    stage.tensor_rule = axis.rule;
    stage.streams = axis.degree > 1 ? 0 : stage.streams; // such a group runs one kernel after another
  }
  return plan;
}

// What was measured of the devices that stand for their groups.
Evaluation of_leaders(const Evaluation& all, const Groups& groups) {
  Evaluation some{.iteration = all.iteration, .why_not = all.why_not, .noise = all.noise};
  for (std::size_t i = 0; i < all.devices.size(); ++i) {
    if (groups.of_leader(all.devices[i]) < static_cast<int>(groups.leader.size())) {
      some.devices.push_back(all.devices[i]);
      some.busy.push_back(all.busy[i]);
      some.tail.push_back(all.tail[i]);
    }
  }
  return some;
}

// The same questions about groups. plan_of stays empty: only a reference asks it, which makes no pipelines.
PlanRequest request_of_groups(const PlanRequest& request, const Problem& problem, const Groups& groups) {
  PlanRequest of_groups{.problem = problem,
                        .devices = groups.leader,
                        .chunks = request.chunks,
                        .stage_placement = request.stage_placement,
                        .layers = request.layers,
                        .in_flight = request.in_flight,
                        .versions = request.versions,
                        .seed = request.seed,
                        .drawn = request.drawn,
                        .budget = request.budget,
                        .balance = request.balance,
                        .state_cap = request.state_cap};
  if (request.evaluate) {
    of_groups.evaluate = [&](const Plan& plan) {
      return of_leaders(request.evaluate(with_all_devices(plan, groups)), groups);
    };
  }
  if (request.replay) {
    of_groups.replay = [&](std::span<const Plan> plans) {
      std::vector<Plan> whole;
      for (const Plan& plan : plans) {
        whole.push_back(with_all_devices(plan, groups));
      }
      std::vector<Evaluation> found = request.replay(whole);
      for (Evaluation& one : found) {
        one = of_leaders(one, groups);
      }
      return found;
    };
  }
  return of_groups;
}

// Seconds of a replica's slowest rank for a whole micro-batch: each rank has the operators of its stages, and the speed
// of the slowest of its devices. What a group exchanges is left out.
double seconds_of_replica(const Problem& problem, const Plan& plan, const Groups& groups, int replica) {
  std::vector<double> seconds(groups.devices.size(), 0);
  for (const Stage& stage : plan.stages) {
    const int rank = groups.of_leader(stage.devices.front());
    const int tensor = groups.mesh.rank(rank).tensor;
    double slowest = 0;
    for (int i = 0; i < tensor; ++i) {
      double of_device = 0;
      for (const OperatorId op : stage.operators) {
        of_device += problem.seconds(problem.type_index(groups.devices[rank][replica * tensor + i]), op);
      }
      slowest = std::max(slowest, of_device / tensor);
    }
    seconds[rank] += slowest;
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

// Shares in proportion to the speed of replicas, in whole samples; equal ones are none. "" or why they do not fit.
std::string share_by_speed(const Problem& problem, const Plan& plan, Groups& groups) {
  if (std::string lacks = missing_kernel(problem, with_all_devices(plan, groups)); !lacks.empty()) {
    return lacks;
  }
  std::vector<double> speeds;
  for (int replica = 0; replica < groups.mesh.data; ++replica) {
    speeds.push_back(1 / std::max(seconds_of_replica(problem, plan, groups, replica), 1e-300));
  }
  const std::vector<double> shares = shares_by_speed(problem, speeds);
  const auto none = std::find(shares.begin(), shares.end(), 0.0);
  if (none != shares.end()) {
    return "replica " + std::to_string(none - shares.begin()) + " would get none of the " +
           count_of(std::lround(problem.samples), "sample") +
           " of a micro-batch; allowed: fewer micro-batches, or fewer replicas";
  }
  const bool alike = std::all_of(shares.begin(), shares.end(), [&](double share) { return share == shares.front(); });
  groups.shares = alike ? std::vector<double>() : shares;
  return "";
}

// "" or why a rank's devices cannot share the operators of the model.
std::string rank_defect(const Problem& problem, const Groups& groups) {
  std::vector<OperatorId> all(problem.model.size());
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t rank = 0; rank < groups.devices.size(); ++rank) {
    const TensorAxis axis = groups.axis(static_cast<int>(rank));
    const GroupSpeed speed = speed_of_groups(problem, groups.devices[rank], axis, 1.0 / groups.mesh.data);
    const auto shared = split_tensors(problem, all, axis, speed);
    if (const Infeasible* reason = std::get_if<Infeasible>(&shared)) {
      return "rank " + std::to_string(rank) + " of the pipeline: " + reason->reason;
    }
  }
  return "";
}

// Of a strategy that takes degrees as they are and asks for no times: ranks of several sizes, replicas of several
// speeds.
PlanResult plan_uneven(const StrategyRow& strategy, const PlanRequest& request, Groups groups) {
  const Problem& problem = request.problem;
  if (std::string defect = rank_defect(problem, groups); !defect.empty()) {
    return Infeasible{std::move(defect)};
  }
  PlanResult result = strategy.split(request_of_groups(request, problem, groups));
  Plan* const plan = std::get_if<Plan>(&result);
  if (plan == nullptr) {
    return result;
  }
  const bool by_speed = problem.training.parallel->shares == ReplicaShares::by_speed;
  if (std::string defect = by_speed ? share_by_speed(problem, *plan, groups) : ""; !defect.empty()) {
    return Infeasible{std::move(defect)};
  }
  return with_all_devices(std::move(*plan), groups);
}

} // namespace

int pipeline_ranks(const Training& training, std::size_t devices) {
  if (!training.parallel) {
    return static_cast<int>(devices);
  }
  const auto mesh = mesh_of(*training.parallel, static_cast<int>(devices));
  return std::holds_alternative<Mesh>(mesh) ? std::get<Mesh>(mesh).pipeline : 1;
}

PlanResult plan_in_groups(const StrategyRow& strategy, const PlanRequest& request) {
  const Problem& problem = request.problem;
  const auto found = mesh_of(*problem.training.parallel, static_cast<int>(request.devices.size()));
  if (const Infeasible* reason = std::get_if<Infeasible>(&found)) {
    return *reason;
  }
  const Mesh mesh = std::get<Mesh>(found);
  const ParallelDegrees& degrees = *problem.training.parallel;
  const bool equal = degrees.shares == ReplicaShares::equal;
  if (const std::string defect = equal ? batch_defect(problem, mesh.data) : ""; !defect.empty()) {
    return Infeasible{defect};
  }
  if (!equal || !degrees.ranks.empty()) {
    return plan_uneven(strategy, request, make_groups(request, mesh));
  }
  std::vector<OperatorId> all(problem.model.size());
  std::iota(all.begin(), all.end(), 0);
  const Groups groups = make_groups(request, mesh);
  const TensorAxis axis = groups.axis(0);
  const auto shared =
      split_tensors(problem, all, axis, speed_of_groups(problem, devices_of(groups), axis, 1.0 / mesh.data));
  if (const Infeasible* reason = std::get_if<Infeasible>(&shared)) {
    return *reason;
  }
  const auto& split = std::get<TensorSplit>(shared);
  const ModelGraph model = as_a_rank_has_it(problem.model, split, mesh.tensor);
  const GroupCost cost(problem, split, groups);
  Training training = problem.training;
  training.global_batch = std::max(1, training.global_batch / mesh.data);
  training.parallel.reset();
  training.sharding.per_device = mesh.data;
  const Problem of_groups =
      make_problem(model, problem.platform, cost, training, problem.router, problem.micro_batches);
  PlanResult result = strategy.split(request_of_groups(request, of_groups, groups));
  if (Plan* plan = std::get_if<Plan>(&result)) {
    return with_all_devices(std::move(*plan), groups);
  }
  return result;
}

} // namespace stagecraft
