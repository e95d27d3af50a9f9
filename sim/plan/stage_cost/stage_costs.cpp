// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/stage_costs.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "sim/base/bytes.hpp"
#include "sim/base/improves.hpp"
#include "sim/cost/kernel_power.hpp"
#include "sim/plan/stage_cost/hand_over.hpp"
#include "sim/plan/stage_cost/held_memory.hpp"
#include "sim/plan/stage_cost/known_stages.hpp"
#include "sim/plan/stage_cost/passes/replica_times.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/plan/stage_of_operators.hpp"

namespace stagecraft {
namespace {

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

// [stage]; fills the edges and cuts of `cost`.
std::vector<Borders> cross_borders(const Problem& problem, const Plan& plan, PlanCost& cost) {
  const std::vector<int> stage_of = stage_of_operators(problem.model.size(), plan);
  const std::size_t stages = cost.stages.size();
  std::vector<Borders> borders(stages);
  cost.cut.assign(stages - 1, Bytes{0});
  std::map<std::pair<int, int>, Bytes> crossing;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    const int home = stage_of[op];
    if (problem.model.predecessors[op].empty()) {
      borders[home].incoming += problem.input_bytes();
    }
    const std::vector<int> targets = target_stages(problem, stage_of, op);
    const Bytes bytes = targets.empty() ? Bytes{0} : problem.output_bytes(op);
    borders[home].outgoing += bytes;
    for (const int target : targets) {
      borders[target].incoming += bytes;
      crossing[{home, target}] += bytes;
    }
    for (int boundary = home; !targets.empty() && boundary < targets.back(); ++boundary) {
      cost.cut[boundary] += bytes;
    }
  }
  for (const auto& [ends, bytes] : crossing) {
    cost.edges.push_back({ends.first, ends.second, bytes});
    if (plan.stages[ends.first].devices != plan.stages[ends.second].devices) {
      ++borders[ends.first].to;
      ++borders[ends.second].from;
      borders[ends.first].sent += bytes;
      borders[ends.second].received += bytes;
    }
  }
  return borders;
}

// Buckets in the order of backward, last operator first. The operator that fills a bucket closes it. The buckets' parts
// of the time are those on the first device.
std::vector<GradientBucket> gradient_buckets(const Problem& problem, const Stage& stage, const TensorSplit& split,
                                             const GroupPasses* passes, Bytes gradients) {
  const Bytes size = problem.training.gradient_bucket;
  const int type = problem.type_index(stage.devices.front());
  double seconds = 0;
  const auto time_of = [&](std::size_t at) {
    const OperatorId op = stage.operators[at];
    return passes != nullptr ? passes->of_operators.backward[at].value
                             : problem.backward_input[type][op] + problem.backward_weight[type][op];
  };
  const bool mixes = std::any_of(split.operators.begin(), split.operators.end(),
                                 [](const RankShare& part) { return part.of_experts; });
  const auto parameters_of = [&](std::size_t at) { // ranks have much less of experts than of other operators
    return problem.model.operators[stage.operators[at]].parameters * (mixes ? split.operators[at].parameters : 1);
  };
  double parameters = 0;
  for (std::size_t at = 0; at < stage.operators.size(); ++at) {
    parameters += parameters_of(at);
    seconds += time_of(at);
  }
  if (size.value <= 0 || gradients <= size || seconds <= 0 || !std::isfinite(seconds)) {
    return {};
  }
  std::vector<GradientBucket> buckets;
  GradientBucket open{0, Bytes{0}};
  for (std::size_t at = stage.operators.size(); at-- > 0;) {
    open.part += time_of(at) / seconds;
    (split.operators[at].of_experts ? open.of_experts : open.bytes) += gradients * (parameters_of(at) / parameters);
    open.first = at;
    if (open.bytes + open.of_experts >= size) {
      buckets.push_back(open);
      open = {0, Bytes{0}};
    }
  }
  if (open.part > 0 || open.bytes.value > 0) {
    buckets.push_back(open);
  }
  return buckets;
}

enum class Figures { all, memory };

// Time of casting the stage's weights, once an iteration: each device has its shards, whoever steps them. Where
// replicas gather 8 bits, each casts its part, and transposes what the others have cast.
Seconds weight_cast_time(const Problem& problem, const Stage& stage, const TensorSplit& split, const DeviceType& type) {
  const Training& training = problem.training;
  const Fp8Row& recipe = *training.fp8;
  const bool gathers = training.sharding.quantized_weights == QuantizedWeights::fp8 && stage.replicas() > 1;
  Seconds sum;
  for (std::size_t i = 0; i < stage.operators.size(); ++i) {
    const Operator& op = problem.model.operators[stage.operators[i]];
    if (op.products && op.parameters > 0) {
      const RankShare& share = split.operators[i];
      const int sharing = share.of_experts ? sharing_experts(training, stage) : sharing_replicas(training, stage);
      const double own = gathers ? 1.0 / sharing : 1;
      const double each = recipe.cast_bytes * own + recipe.transposed * (1 - own);
      const Bytes moved{each * op.parameters * share.parameters};
      sum += recipe.casts * type.launch_overhead + moved / type.memory_bandwidth;
    }
  }
  return sum;
}

// What each operator takes of the passes on a device by itself.
OperatorSeconds operator_seconds(const Problem& problem, const Stage& stage, int type) {
  OperatorSeconds seconds;
  for (const OperatorId op : stage.operators) {
    const Seconds forward{problem.forward[type][op]};
    const Seconds input{problem.backward_input[type][op]}, weight{problem.backward_weight[type][op]};
    seconds.forward.push_back(forward);
    seconds.backward.push_back(input + weight);
    seconds.backward_input.push_back(input);
    seconds.backward_weight.push_back(weight);
    seconds.recompute.push_back(stage.recomputes(op) ? forward : Seconds{0});
  }
  return seconds;
}

// Devices of the plan in each node, which share the node's host.
std::vector<int> devices_by_node(const Problem& problem, const Plan& plan) {
  std::vector<int> count(problem.platform.nodes.size(), 0);
  for (const DeviceId device : devices_of(plan)) {
    ++count[problem.platform.devices[device].node];
  }
  return count;
}

// A step by the cores of a device's process, an equal part of a host that so many share, or what its threads can use of
// that: what they compute, and what threads can move.
Seconds seconds_of_cores(const HostStep& step, const Host& host, int sharers, int threads) {
  constexpr BytesPerSecond kOfCore{18e9}; // docs/model.md, "What is left to hosts"
  const double equal = static_cast<double>(host.cores) / sharers;
  const double cores = threads == 0 ? equal : std::min(equal, static_cast<double>(threads));
  const FlopsPerSecond speed = host.core_speed * cores;
  const Seconds computing{std::isinf(speed.value) ? 0 : step.work / speed.value};
  return threads == 0 ? computing : std::max(computing, step.moved / (kOfCore * cores));
}

// What a device leaves to its host, which steps `steps` parameters as host_step() counts them, for `sharers` devices
// alike.
HostCost host_cost(const Problem& problem, DeviceId device, double steps, int sharers) {
  const Leg nowhere{{}, {}, BytesPerSecond{kInfinity}};
  const int node = problem.platform.devices[device].node;
  const Host& host = problem.platform.nodes[node].host;
  const HostStep step = host_step(problem.training, steps);
  const BytesPerSecond memory = host.memory_bandwidth / static_cast<double>(sharers);
  const Seconds by_cores = seconds_of_cores(step, host, sharers, problem.training.host_threads);
  return {.to_host = problem.router.to_host(device).value_or(nowhere),
          .from_host = problem.router.from_host(device).value_or(nowhere),
          .gradients = step.gradients,
          .weights = step.weights,
          .moved = step.moved,
          .step = std::max(by_cores, step.moved / memory),
          .memory = memory,
          .node = node};
}

// Times of kernels that make a unit's weights and gradients smaller before they are sent, and back, or copy what was
// gathered: bound by memory.
// Gradients are made smaller, added up and made smaller again between the hops, and added up (Wang et al. 2023, 4.3).
std::vector<UnitKernels> unit_kernels(const Problem& problem, const Stage& stage, const std::vector<ShardUnit>& units,
                                      int sharing) {
  const Sharding& sharding = problem.training.sharding;
  const bool weights = sharding.quantized_weights == QuantizedWeights::int8;
  const bool experts_apart = stage.axes().expert_replicas() >= sharing; // no others have the same
  std::vector<UnitKernels> kernels;
  if ((!weights && !sharding.quantized_gradients && !sharding.copied_out) || stage.replicas() < 2) {
    return kernels;
  }
  Seconds launch;
  BytesPerSecond bandwidth{kInfinity};
  std::map<int, int> by_node;
  for (const DeviceId device : stage.devices) {
    launch = std::max(launch, problem.platform.type_of(device).launch_overhead);
    bandwidth = std::min(bandwidth, problem.platform.type_of(device).memory_bandwidth);
    ++by_node[problem.platform.devices[device].node];
  }
  const double inside = std::min(sharing, std::max(1, by_node.begin()->second / stage.tensor_parallel));
  const auto kernel = [&](Bytes moved) { return launch + moved / bandwidth; };
  for (const ShardUnit& unit : units) {
    UnitKernels& made = kernels.emplace_back();
    const Bytes stored = unit.all_weights();
    if (weights && stored.value > 0) {
      made.before_gather = kernel(stored * ((1 + unit.gathered.dense) / sharing));
      made.before_second_gather = kernel(stored * ((1 + unit.gathered.dense) / std::max(1, sharding.secondary)));
      made.after_gather = kernel(stored * (1 + unit.gathered.dense));
    }
    if (const Bytes gathered = experts_apart ? unit.weights : unit.all_weights();
        sharding.copied_out && gathered.value > 0) {
      made.after_gather += kernel(2 * gathered / problem.training.kernel_speed.other);
    }
    const Bytes full = unit.all_gradients(), sent = full * unit.reduced;
    if (sharding.quantized_gradients && full.value > 0) {
      made.before_reduce = kernel(full + sent);
      made.between = kernel(sent * (1 + 1 / inside));
      made.after_reduce = kernel(sent / inside + full / sharing);
    }
  }
  return kernels;
}

double largest_share(const Stage& stage) {
  double largest = 0;
  for (std::size_t replica = 0; replica < stage.replicas(); ++replica) {
    largest = std::max(largest, stage.share(replica));
  }
  return largest;
}

// What the first stage's step takes beside its kernels; all others wait for it.
Seconds step_overhead(const Problem& problem, const Stage& stage) {
  const bool reads = !stage.operators.empty() && stage.operators.front() == 0;
  return reads ? problem.training.step_overhead : Seconds{0};
}

// What the device leaves to its host; null where that is nothing. `by_unit`: its gradients go there with their units.
std::shared_ptr<const HostCost> host_of(const Problem& problem, DeviceId device, double steps,
                                        const std::vector<int>& sharers, bool by_unit) {
  if (!problem.training.offload.on()) {
    return nullptr;
  }
  HostCost host = host_cost(problem, device, steps, sharers[problem.platform.devices[device].node]);
  host.gradients = by_unit ? Bytes{0} : host.gradients;
  return std::make_shared<const HostCost>(host);
}

// The parts of its passes between which units are gathered or buckets reduced.
void add_parts(const Problem& problem, const Stage& stage, const TensorSplit& split, bool by_unit, StageCost& cost) {
  if (!cost.units.empty()) {
    cost.kernels = unit_kernels(problem, stage, cost.units, cost.sharing);
    cost.unit_parts = parts_of(
        cost.units, cost.groups.empty() ? operator_seconds(problem, stage, problem.type_index(stage.devices.front()))
                                        : cost.groups.front().passes->of_operators);
  }
  if (!cost.shares_units() && (stage.replicas() > 1 || (problem.training.offload.gradients && !by_unit))) {
    cost.buckets =
        gradient_buckets(problem, stage, split, cost.groups.empty() ? nullptr : cost.groups.front().passes.get(),
                         cost.gradients + cost.expert_gradients);
  }
}

// How a stage's tensors are divided. `deferred`: the product whose weights' gradients wait; -1: none.
TensorSplit split_of(const Problem& problem, const Stage& stage, OperatorId deferred, KnownPrograms& programs) {
  const GroupSpeed speed = speed_of_groups(problem, stage.devices, stage.axes(), largest_share(stage));
  TensorSplit split = std::get<TensorSplit>(split_tensors(problem, stage.operators, stage.axes(), speed, &programs));
  const auto at = std::lower_bound(stage.operators.begin(), stage.operators.end(), deferred);
  if (deferred >= 0 && at != stage.operators.end() && *at == deferred) {
    split.operators[static_cast<std::size_t>(at - stage.operators.begin())].deferred = true;
  }
  return split;
}

// The part of an optimiser's step in which its device rests: while its host is late, and as its kernels move data
// alone.
double rest_of_step(Seconds late, Seconds stepping) {
  return (late + stepping).value > 0 ? (late + (1 - kMemoryPower) * stepping) / (late + stepping) : 0;
}

// Whether each device of the stage sends only a part of what it has of a tensor for another stage.
bool scatters(const Problem& problem, const Stage& stage, const TensorSplit& split) {
  return problem.training.scatter_gather && stage.tensor_parallel > 1 && split.borders == 1;
}

// What a stage's replicas have in common: what they share, gather and reduce, and send to other stages.
StageCost common_cost(const Problem& problem, const Stage& stage, const TensorSplit& split, const HeldMemory& held) {
  StageCost cost{.tensor_parallel = stage.tensor_parallel,
                 .border_part = scatters(problem, stage, split) ? 1.0 / stage.tensor_parallel : split.borders,
                 .turns = stage.turns};
  const double each = parameter_bytes(problem.training).gradient;
  cost.gradients = Bytes{std::round((held.parameters - held.of_experts) * each)};
  cost.expert_gradients = Bytes{std::round(held.of_experts * each)};
  cost.axes = stage.axes();
  cost.units = shard_units(problem, stage, split);
  cost.only_offloads = !shares_by_unit(problem.training, stage);
  cost.gathered = gathered_part(problem, stage, split);
  if (stage.replicas() > 1) {
    cost.zero = problem.training.sharding.zero;
    cost.sharing = sharing_replicas(problem.training, stage);
    cost.broadcasts = held.stepped;
    cost.expert_broadcasts = held.stepped_experts;
  }
  return cost;
}

// `sharers`: the plan's devices in each node. `fold`: whose costs are wanted; null: those of all replicas.
StageCost cost_stage(const Problem& problem, const Stage& stage, const std::vector<int>& sharers,
                     const Borders& borders, Figures figures, const StageFold* fold, OperatorId deferred,
                     KnownPrograms& programs) {
  const TensorSplit split = split_of(problem, stage, deferred, programs);
  const HeldMemory held = held_by(problem, stage, split);
  StageCost cost = common_cost(problem, stage, split, held);
  const double steps = held.parameters * part_of_shared(problem.training, stage, held);
  const bool by_unit = copies_gradients_by_unit(problem.training.offload, problem.training.sharding, cost);
  if (fold != nullptr) {
    cost.devices = stage.devices;
  }
  if (figures == Figures::all) {
    cost.teams = teams_of(problem, stage, fold);
  }
  ReplicaTimes known(problem, stage, split);
  const Seconds launching_fast = step_launches(problem, stage.operators);
  cost.loads = known.loads();
  for (std::size_t at = 0; at < (fold != nullptr ? fold->first.size() : stage.replicas()); ++at) {
    const std::size_t replica = fold != nullptr ? static_cast<std::size_t>(fold->first[at]) : at;
    const double share = stage.share(replica);
    const auto first = stage.devices.begin() + static_cast<std::ptrdiff_t>(replica) * stage.tensor_parallel;
    const std::vector<DeviceId> devices(first, first + stage.tensor_parallel);
    ReplicaSeconds times;
    Seconds terms;
    if (figures == Figures::all) {
      times = known.of(replica, devices, cost.teams.slowest(at * devices.size(), devices.size()));
      if (times.passes != nullptr) {
        cost.groups.push_back({times.passes});
        terms = times.passes->terms.seconds;
      }
    }
    const StageMemory memory = memory_of_replica(problem, stage, held, cost.units, borders.incoming * split.borders,
                                                 borders.outgoing * split.borders, share);
    for (const DeviceId device : devices) {
      const DeviceType& type = problem.platform.type_of(device);
      const ClippingTimes clipping = clipping_times(problem.training, steps, type);
      const Seconds stepping = optimizer_time(problem.training, steps, type);
      const Seconds launching = launching_fast / slowest_host(problem.platform, devices);
      const Seconds ahead = problem.training.launches.waits ? Seconds{0} : times.ahead;
      const Seconds late = std::max(Seconds{0}, launching - ahead - stepping) + step_overhead(problem, stage);
      cost.replicas.push_back(
          {.device = device,
           .share = share,
           .forward = Seconds{times.forward},
           .backward_input = Seconds{times.input},
           .backward_weight = Seconds{times.weight},
           .overlap = Seconds{times.overlap},
           .deferred = Seconds{times.deferred},
           .recompute = Seconds{times.again},
           .norm = clipping.norm,
           .optimizer = stepping + late + terms + clipping.scale + weight_cast_time(problem, stage, split, type),
           .prediction = prediction_time(problem.training, held.parameters, type),
           .rest = {times.rest.forward, times.rest.backward, rest_of_step(late, stepping)},
           .memory = memory,
           .host = figures == Figures::all ? host_of(problem, device, steps, sharers, by_unit) : nullptr});
    }
  }
  if (figures == Figures::all) {
    add_parts(problem, stage, split, by_unit, cost);
    add_hand_over(problem, borders, scatters(problem, stage, split), cost);
  }
  return cost;
}

// The last product with weights of a pipeline whose gradients wait until it drains; -1: none waits.
OperatorId deferred_product(const Problem& problem, const Plan& plan) {
  if (!problem.training.deferred_head || plan.stages.size() < 2 ||
      plan.stages.front().devices == plan.stages.back().devices) {
    return -1;
  }
  for (OperatorId op = problem.model.size(); op-- > 0;) {
    const Operator& what = problem.model.operators[op];
    if (what.kind == KernelKind::matmul && (what.parameters > 0 || what.forward.moved_parameters > 0)) {
      return op;
    }
  }
  return -1;
}

// All that the costs of a stage depend on, where nothing is left to hosts, which devices of other stages share, and
// each replica is simulated. Each member is named, so that a new one does not compile until it is written here.
std::string key_of(const Problem& problem, const Stage& stage, const Borders& borders, Figures figures,
                   OperatorId deferred) {
  const auto& [operators, devices, shares, tensor_parallel, sequence_parallel, tensor_rule, recompute, recomputed,
               context, experts, turns, streams] = stage;
  const auto& [expert_ranks, expert_tensor] = experts;
  const auto& [incoming, outgoing, from, to, received, sent] = borders;
  const auto& [context_ranks, context_rule, context_heads, context_order] = context;
  std::string key;
  const void* const whose = &problem;
  const auto add = [&key](const auto&... values) { (put(key, values), ...); };
  put_list(key, operators);
  put_list(key, devices);
  put_list(key, shares);
  put_list(key, recomputed);
  add(whose, incoming, outgoing, from, to, received, sent, figures, deferred, tensor_parallel, sequence_parallel,
      tensor_rule, recompute, context_ranks, context_rule, context_heads, context_order, expert_ranks, expert_tensor,
      turns, streams);
  return key;
}

PlanCost cost_plan(const Problem& problem, const Plan& plan, Figures figures, const Fold* fold = nullptr,
                   KnownStages* known = nullptr) {
  PlanCost cost;
  cost.stages.resize(plan.stages.size());
  const std::vector<Borders> borders = cross_borders(problem, plan, cost);
  const std::vector<int> sharers = devices_by_node(problem, plan);
  const OperatorId deferred = deferred_product(problem, plan);
  KnownPrograms programs;
  const bool may_be_known = known != nullptr && fold == nullptr && !problem.training.offload.on();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto made = [&] {
      return cost_stage(problem, plan.stages[s], sharers, borders[s], figures,
                        fold != nullptr ? &fold->stages[s] : nullptr, deferred, programs);
    };
    cost.stages[s] = may_be_known
                         ? known->find_or_make(key_of(problem, plan.stages[s], borders[s], figures, deferred), made)
                         : made();
  }
  return cost;
}

} // namespace

std::vector<double> TensorGroup::parts_of(const std::vector<GradientBucket>& buckets) const {
  const std::vector<Seconds>& times = passes->of_operators.backward;
  const Seconds all = std::accumulate(times.begin(), times.end(), Seconds{0});
  std::vector<double> parts;
  std::size_t end = times.size();
  for (const GradientBucket& bucket : buckets) {
    const auto begin = times.begin() + static_cast<std::ptrdiff_t>(bucket.first);
    parts.push_back(std::accumulate(begin, times.begin() + static_cast<std::ptrdiff_t>(end), Seconds{0}) / all);
    end = bucket.first;
  }
  return parts;
}

std::vector<StepsAlike> collectives_after_step(const StageCost& cost, bool of_experts) {
  const std::vector<StepsAlike>& broadcasts = of_experts ? cost.expert_broadcasts : cost.broadcasts;
  return broadcasts.empty() ? std::vector<StepsAlike>{StepsAlike{}} : broadcasts;
}

// Weights belong to experts in the part in which gradients do.
Bytes gathered_after_step(const StageCost& cost, bool of_experts) {
  const Bytes weights = cost.replicas.front().memory.weights;
  const Bytes all = cost.gradients + cost.expert_gradients;
  const Bytes experts = all.value > 0 ? weights * (cost.expert_gradients / all) : Bytes{0};
  return (of_experts ? experts : weights - experts) * cost.gathered.of(of_experts);
}

std::vector<std::vector<std::size_t>> expert_groups(const StageCost& cost, std::size_t rank) {
  const auto degree = static_cast<std::size_t>(cost.tensor_parallel);
  std::vector<std::vector<std::size_t>> groups(static_cast<std::size_t>(cost.axes.expert_replicas()));
  for (std::size_t replica = 0; replica < cost.size() / degree; ++replica) {
    groups[replica % groups.size()].push_back(replica * degree + rank);
  }
  return groups;
}

bool copies_gradients_by_unit(const Offload& offload, const Sharding& sharding, const StageCost& cost) {
  return offload.gradients && sharding.zero >= Zero::gradients && !cost.units.empty();
}

double part_sent(const StageCost& from, int from_rank, const StageCost& to, int to_rank) {
  const bool from_parts = from.border_part < 1;
  if (!from_parts && to_rank % from.tensor_parallel != from_rank) {
    return 0;
  }
  const double begin = from_parts ? from_rank * from.border_part : 0;
  const double wanted = to.border_part < 1 ? to_rank * to.border_part : 0;
  return std::max(0.0, std::min(begin + from.border_part, wanted + to.border_part) - std::max(begin, wanted));
}

void recompute_as_trained(const Problem& problem, Stage& stage) {
  stage.recompute = problem.training.recompute.what;
  stage.recomputed.clear();
  if (stage.recompute != Recompute::selective) {
    return;
  }
  if (problem.training.recompute.first > 0) {
    stage.recomputed =
        selected_in_stage(problem.training.recompute, problem.model, problem.block_numbers, stage.operators);
  } else {
    std::copy_if(stage.operators.begin(), stage.operators.end(), std::back_inserter(stage.recomputed),
                 [&](OperatorId op) { return problem.recomputes(op); });
  }
  stage.recompute = stage.recomputed.empty() ? Recompute::none : Recompute::selective;
}

PlanCost cost_plan(const Problem& problem, const Plan& plan) { return cost_plan(problem, plan, Figures::all); }

PlanCost cost_plan(const Problem& problem, const Plan& plan, Fold fold) {
  PlanCost cost = cost_plan(problem, plan, Figures::all, &fold);
  cost.fold = std::make_shared<const Fold>(std::move(fold));
  return cost;
}

PlanCost cost_memory(const Problem& problem, const Plan& plan) { return cost_plan(problem, plan, Figures::memory); }

PlanCost cost_plan(const Problem& problem, const Plan& plan, KnownStages* known) {
  return cost_plan(problem, plan, Figures::all, nullptr, known);
}

PlanCost cost_memory(const Problem& problem, const Plan& plan, KnownStages* known) {
  return cost_plan(problem, plan, Figures::memory, nullptr, known);
}

} // namespace stagecraft
