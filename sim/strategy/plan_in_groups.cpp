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
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"

namespace stagecraft {
namespace {

/// The devices of each rank of the pipeline, replica by replica, in each by context and tensor rank, and the one of
/// each that stands for it.
struct Groups {
  Mesh mesh;
  std::vector<double> shares; // of the replicas; empty: equal ones
  std::vector<std::vector<DeviceId>> devices;
  std::vector<DeviceId> leader;

  /// How a rank's devices share operators.
  StageAxes axes(int rank) const {
    const RankDegrees degrees = mesh.rank(rank);
    return {degrees.tensor, degrees.sequence, degrees.tensor > 1 ? mesh.tensor_rule : TensorRule::megatron,
            mesh.context, mesh.experts};
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
      for (int context = 0; context < mesh.context.ranks; ++context) {
        for (int tensor = 0; tensor < mesh.rank(rank).tensor; ++tensor) {
          devices.push_back(request.devices[mesh.place(rank, replica, context, tensor)]);
        }
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

/// Times of a device's part of each operator for one replica's micro-batch, with what it exchanges in its passes.
class GroupCost final : public CostModel {
public:
  GroupCost(const Problem& problem, const TensorSplit& split, const Groups& groups)
      : problem_(problem), split_(split), alone_(groups.axes(0).alone()), ranks_(groups.mesh.context.ranks),
        unlike_(problem.platform.types.size()) {
    std::set<std::pair<int, std::vector<int>>> seen; // type, and how a group's devices lie
    const std::vector<OperatorId> operators = all_operators(problem.model);
    for (std::size_t rank = 0; rank < groups.devices.size() && !alone_; ++rank) {
      const int type = problem.type_index(groups.leader[rank]);
      std::vector<AxisGroups>& unlike = unlike_[type];
      const StageAxes axes = groups.axes(static_cast<int>(rank));
      const std::vector<DeviceId>& all = groups.devices[rank];
      // Ranks that share tokens or experts with a tensor group's.
      const std::size_t together =
          static_cast<std::size_t>(axes.degree) * std::lcm(axes.context.ranks, axes.expert_replicas());
      for (std::size_t begin = 0; begin < all.size(); begin += together) {
        const std::vector<DeviceId> devices(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                            all.begin() + static_cast<std::ptrdiff_t>(begin + together));
        if (!seen.insert({type, lie_of(devices, problem.router)}).second) {
          continue;
        }
        const Teams teams = teams_of(problem, {.operators = operators,
                                               .devices = devices,
                                               .tensor_parallel = axes.degree,
                                               .context = axes.context,
                                               .experts = axes.experts});
        add_unlike(teams, static_cast<std::size_t>(axes.degree), unlike);
      }
    }
  }

  std::optional<OperatorTime> time(OperatorId op, const DeviceType& type, double samples,
                                   Precision precision) const override {
    if (alone_) {
      return problem_.cost.time(op, type, samples, precision);
    }
    const RankShare& share = split_.operators[op];
    const double own = samples / ranks_;
    std::optional<OperatorTime> time = problem_.cost.time_of_shard(op, type, own, precision, share.shard);
    if (time) {
      const OperatorTime computed = *time;
      for (const AxisGroups& groups : unlike_[&type - problem_.platform.types.data()]) {
        const double part = own / problem_.samples;
        const Seconds backward = backward_seconds(computed, share, groups, part);
        time->forward = std::max(time->forward, forward_seconds(computed, share, groups, part));
        time->backward_input = std::max(time->backward_input, backward - computed.backward_weight);
      }
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
  // The groups of each replica, if none is known that takes the same times.
  static void add_unlike(const Teams& teams, std::size_t tensor, std::vector<AxisGroups>& unlike) {
    for (std::size_t first = 0; first < teams.of.size(); first += tensor) {
      AxisGroups one = teams.slowest(first, tensor);
      if (std::none_of(unlike.begin(), unlike.end(),
                       [&](const AxisGroups& known) { return figures_of(known) == figures_of(one); })) {
        unlike.push_back(std::move(one));
      }
    }
  }

  const Problem& problem_;
  const TensorSplit& split_;
  bool alone_;
  int ranks_;                                   // of the context axis, which share a replica's tokens
  std::vector<std::vector<AxisGroups>> unlike_; // [device type]: the groups of replicas that such a device stands for
};

// What the model's file says of a tensor group is of one device to whom a group is one.
void keep_those_of_degree(std::vector<Configuration>& configurations, int degree) {
  std::erase_if(configurations, [&](const Configuration& one) { return one.tensor_parallel != degree; });
  for (Configuration& one : configurations) {
    one.tensor_parallel = 1;
  }
}

// The model with each operator as one rank of a replica has it.
ModelGraph as_a_rank_has_it(ModelGraph model, const TensorSplit& split, const StageAxes& axes) {
  const double tokens = 1.0 / axes.context.ranks;
  for (OperatorId op = 0; op < model.size(); ++op) {
    Operator& what = model.operators[op];
    const RankShare& share = split.operators[op];
    what.parameters *= share.parameters;
    what.stash_elements *= share.stash * tokens;
    what.weight_elements *= what.weight_elements > 0 ? share.weight_stash * tokens : 1;
    what.output_elements *= split.borders * tokens;
    what.resident_bytes *= share.resident(axes.degree);
  }
  for (std::vector<Configuration>& of_operator : model.configurations) {
    keep_those_of_degree(of_operator, axes.degree);
  }
  model.input_elements *= split.borders * tokens;
  return model;
}

Plan with_all_devices(Plan plan, const Groups& groups) {
  for (Stage& stage : plan.stages) {
    std::vector<DeviceId> devices;
    std::vector<double> shares;
    const StageAxes axes = groups.axes(groups.of_leader(stage.devices.front()));
    for (std::size_t place = 0; place < stage.devices.size(); ++place) {
      const auto& group = groups.devices[groups.of_leader(stage.devices[place])];
      devices.insert(devices.end(), group.begin(), group.end());
      if (!stage.shares.empty()) {
        const int replicas = groups.mesh.data * axes.context.ranks;
        shares.insert(shares.end(), replicas, stage.shares[place] / replicas);
      }
    }
    stage.devices = std::move(devices);
    stage.shares = std::move(shares);
    if (!groups.shares.empty()) {
      stage.shares.clear();
      for (const double share : groups.shares) {
        stage.shares.insert(stage.shares.end(), axes.context.ranks, share / axes.context.ranks);
      }
    }
    stage.tensor_parallel = axes.degree;
    stage.sequence_parallel = axes.sequence;
    stage.tensor_rule = axes.rule;
    stage.context = axes.context;
    stage.experts = axes.experts;
    stage.streams = axes.alone() ? stage.streams : 0; // such a group runs one kernel after another
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
                        .groups = true,
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
    const int devices = groups.mesh.rank(rank).tensor * groups.mesh.context.ranks;
    double slowest = 0;
    for (int i = 0; i < devices; ++i) {
      double of_device = 0;
      for (const OperatorId op : stage.operators) {
        of_device += problem.seconds(problem.type_index(groups.devices[rank][replica * devices + i]), op);
      }
      slowest = std::max(slowest, of_device / devices);
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
  const std::vector<OperatorId> all = all_operators(problem.model);
  for (std::size_t rank = 0; rank < groups.devices.size(); ++rank) {
    const StageAxes axes = groups.axes(static_cast<int>(rank));
    const GroupSpeed speed = speed_of_groups(problem, groups.devices[rank], axes, 1.0 / groups.mesh.data);
    const auto shared = split_tensors(problem, all, axes, speed);
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
  const std::vector<OperatorId> all = all_operators(problem.model);
  const Groups groups = make_groups(request, mesh);
  const StageAxes axes = groups.axes(0);
  const auto shared =
      split_tensors(problem, all, axes, speed_of_groups(problem, devices_of(groups), axes, 1.0 / mesh.data));
  if (const Infeasible* reason = std::get_if<Infeasible>(&shared)) {
    return *reason;
  }
  const auto& split = std::get<TensorSplit>(shared);
  const ModelGraph model = as_a_rank_has_it(problem.model, split, axes);
  const GroupCost cost(problem, split, groups);
  Training training = problem.training;
  training.global_batch = std::max(1, training.global_batch / mesh.data);
  training.parallel.reset();
  training.sharding.per_device = mesh.data * mesh.context.ranks;
  const Problem of_groups =
      make_problem(model, problem.platform, cost, training, problem.router, problem.micro_batches);
  PlanResult result = strategy.split(request_of_groups(request, of_groups, groups));
  if (Plan* plan = std::get_if<Plan>(&result)) {
    return with_all_devices(std::move(*plan), groups);
  }
  return result;
}

} // namespace stagecraft
