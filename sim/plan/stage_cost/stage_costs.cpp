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
#include "sim/plan/stage_cost/expert_loads.hpp"
#include "sim/plan/stage_cost/kept_bytes.hpp"
#include "sim/plan/stage_cost/known_stages.hpp"
#include "sim/plan/stage_cost/stream_times.hpp"
#include "sim/plan/stage_cost/tensor_parallel.hpp"
#include "sim/plan/stage_cost/token_loads.hpp"

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
  double overlap = 0;                                  // seconds saved by computing both gradients at the same time
  double again = 0;                                    // forward time of recomputed operators
  double deferred = 0;                                 // of `weight`, until after all backwards
  std::shared_ptr<const GroupPasses> passes = nullptr; // where a group takes these times
  AtRest rest{};
  Seconds ahead{}; // by how much the host has launched a backward before the device has computed it
};

// Seconds saved by computing both gradients at once; exactly 0 if they run one after the other.
double backward_overlap(const StreamTimes& times) {
  const double apart = times.backward_input + times.backward_weight;
  return times.backward < apart ? apart - times.backward : 0;
}

// Times of a share of the micro-batch on the streams of one device.
Sums stage_times(const Problem& problem, const Stage& stage, const TensorSplit& split, int type, double share) {
  const int streams = stage.streams > 0 ? stage.streams : problem.training.streams;
  const StreamTimes times = stream_times(problem, stage.operators, type, share, streams, StreamFigures::with_rest);
  Sums sums{times.forward, times.backward_input, times.backward_weight, backward_overlap(times)};
  sums.rest = times.rest;
  sums.ahead = times.ahead;
  for (std::size_t at = 0; at < stage.operators.size(); ++at) {
    if (split.operators[at].deferred) {
      const auto time = problem.cost.time(stage.operators[at], problem.platform.types[static_cast<std::size_t>(type)],
                                          problem.samples * share, problem.training.precision);
      sums.deferred += time ? time->backward_weight.value : 0;
    }
  }
  sums.overlap += sums.deferred;
  if (stage.recompute == Recompute::full) {
    sums.again = times.forward;
  } else if (stage.recompute == Recompute::selective) {
    sums.again = stream_times(problem, stage.recomputed, type, share, streams).forward;
  }
  return sums;
}

Sums group_times(const std::shared_ptr<const GroupPasses>& passes) {
  const double apart = (passes->backward_input.seconds + passes->backward_weight).value;
  return {.forward = passes->forward.seconds.value,
          .input = passes->backward_input.seconds.value,
          .weight = passes->backward_weight.value,
          .overlap = std::max(0.0, apart - passes->backward.seconds.value),
          .again = passes->recompute.seconds.value,
          .deferred = passes->deferred.value,
          .passes = passes,
          .rest = passes->rest,
          .ahead = passes->ahead};
}

// What falls to a replica of each operator, to an equal share, where replicas that share tokens or experts have unlike
// loads: of attention by the tokens that it has, of experts by those of the busiest rank of its tensor group.
class Loads {
public:
  Loads(const Problem& problem, const Stage& stage, const TensorSplit& split)
      : stage_(stage), experts_(static_cast<std::size_t>(stage.axes().expert_replicas())) {
    const auto loops = static_cast<std::size_t>(stage.context.loops());
    std::vector<std::vector<double>> of_tokens(loops, std::vector<double>(stage.operators.size(), 1.0));
    std::vector<std::vector<double>> of_experts(experts_, std::vector<double>(stage.operators.size(), 1.0));
    for (std::size_t at = 0; at < stage.operators.size() && !stage.axes().alone(); ++at) {
      const OperatorId op = stage.operators[at];
      if (const auto& mask = problem.model.operators[op].mask; mask && loops > 1) {
        fill(of_tokens, at, known_tokens(*mask));
      }
      if (split.operators[at].of_experts) {
        if (const auto routing = routing_of(problem, op)) {
          fill(of_experts, at, by_replica(expert_loads(*routing, stage.experts.ranks)));
        }
      }
    }
    tokens_ = equal_ ? std::vector<std::vector<double>>() : std::move(of_tokens);
    of_experts_ = equal_ ? std::vector<std::vector<double>>() : std::move(of_experts);
  }

  bool equal() const { return equal_; }

  /// Replicas of the same number have the same loads.
  std::size_t number_of(std::size_t replica) const {
    return equal_ ? 0 : loop_of(replica) * experts_ + replica % experts_;
  }

  /// [operator of the stage]; empty: all are 1.
  std::vector<double> of(std::size_t replica) const {
    if (equal_) {
      return {};
    }
    std::vector<double> loads = tokens_[loop_of(replica)];
    for (std::size_t at = 0; at < loads.size(); ++at) {
      loads[at] *= of_experts_[replica % experts_][at];
    }
    return loads;
  }

private:
  std::size_t loop_of(std::size_t replica) const {
    const Context& context = stage_.context;
    return replica % static_cast<std::size_t>(context.ranks) / static_cast<std::size_t>(context.heads);
  }

  void fill(std::vector<std::vector<double>>& loads, std::size_t at, const std::vector<double>& of_ranks) {
    for (std::size_t rank = 0; rank < loads.size(); ++rank) {
      loads[rank][at] = of_ranks[rank];
      equal_ = equal_ && std::abs(of_ranks[rank] - 1) < 1e-12;
    }
  }

  const std::vector<double>& known_tokens(const AttentionMask& mask) {
    auto found = std::find_if(masks_.begin(), masks_.end(), [&](const auto& one) { return one.first == mask; });
    if (found == masks_.end()) {
      found = masks_.insert(masks_.end(), {mask, token_loads(mask, stage_.context)});
    }
    return found->second;
  }

  // The busiest of the expert ranks in each replica.
  std::vector<double> by_replica(const std::vector<double>& of_ranks) const {
    std::vector<double> loads(experts_, 0);
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
      double& load = loads[rank * experts_ / of_ranks.size()];
      load = std::max(load, of_ranks[rank]);
    }
    return loads;
  }

  const Stage& stage_;
  std::size_t experts_; // replicas that share experts
  bool equal_ = true;
  std::vector<std::vector<double>> tokens_, of_experts_; // [loop or replica][operator of the stage]
  std::vector<std::pair<AttentionMask, std::vector<double>>> masks_;
};

// Times of the replicas of one stage. Those alike are computed once.
class ReplicaTimes {
public:
  ReplicaTimes(const Problem& problem, const Stage& stage, const TensorSplit& split)
      : problem_(problem), stage_(stage), split_(split), loads_(problem, stage, split) {}

  const Sums& of(std::size_t replica, const std::vector<DeviceId>& devices, const AxisGroups& groups) {
    const double share = stage_.share(replica);
    const std::vector<int> types = problem_.types_of(devices);
    const auto [slot, is_new] = known_.try_emplace({types, share, figures_of(groups), loads_.number_of(replica)});
    if (is_new) {
      slot->second = stage_.axes().alone() ? stage_times(problem_, stage_, split_, types.front(), share)
                                           : group_times(std::make_shared<const GroupPasses>(group_passes(
                                                 problem_, stage_, split_, types, groups, share, loads_.of(replica))));
    }
    return slot->second;
  }

  /// As in StageCost.
  std::vector<std::size_t> loads() const {
    std::vector<std::size_t> numbers;
    for (std::size_t replica = 0; replica < stage_.replicas() && !loads_.equal(); ++replica) {
      numbers.push_back(loads_.number_of(replica));
    }
    return numbers;
  }

private:
  const Problem& problem_;
  const Stage& stage_;
  const TensorSplit& split_;
  Loads loads_;
  std::map<std::tuple<std::vector<int>, double, std::vector<double>, std::size_t>, Sums> known_;
};

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

// What one device of a stage holds for a whole micro-batch.
struct Held {
  double parameters = 0;
  double of_experts = 0;            // the part of them that are experts', which ranks share
  Bytes resident;                   // sum of Operator::resident_bytes
  Bytes kept;                       // what is not made again, and what is read to make that
  Bytes read_again;                 // the part of `kept` that only recompute reads
  Bytes workspace;                  // what recompute makes again, of one segment at a time
  Bytes recomputed;                 // of all segments
  std::optional<Bytes> for_weights; // if it is known
  Bytes for_deferred;               // of the weights whose gradients are computed after all backwards
  Bytes gathered, gathered_again;   // tokens of all ranks that share experts: by any pass, and by recompute
  Bytes choices, choices_again;     // of these tokens, of any number of bytes
};

// Where ranks get all tokens they hold those of one mixture at a time; of what comes with them, backward keeps a part.
void hold_gathered(const GatheredTokens& gathered, bool again, Held& held) {
  held.gathered = std::max(held.gathered, gathered.tokens);
  held.choices = std::max(held.choices, gathered.choices);
  held.gathered_again = std::max(held.gathered_again, again ? gathered.tokens : Bytes{0});
  held.choices_again = std::max(held.choices_again, again ? gathered.choices : Bytes{0});
}

// The amounts that the model's file gives.
Held held_as_given(const Problem& problem, const Stage& stage) {
  Held held;
  for (const OperatorId op : stage.operators) {
    const Configuration* one = find_configuration(problem.model, op, stage.tensor_parallel, stage.recomputes(op));
    if (one != nullptr) {
      held.parameters += one->parameters.value / parameter_bytes(problem.training).weight;
      held.resident += one->resident;
      held.kept += one->per_micro_batch * problem.samples;
    }
  }
  return held;
}

Held held_by(const Problem& problem, const Stage& stage, const TensorSplit& split) {
  if (!problem.model.configurations.empty()) {
    return held_as_given(problem, stage);
  }
  Held held;
  Bytes segment; // of the last operator that runs again; those of a segment follow one another
  std::optional<int> number;
  for (std::size_t i = 0; i < stage.operators.size(); ++i) {
    const OperatorId op = stage.operators[i];
    const RankShare& part = split.operators[i];
    const double parameters = problem.model.operators[op].parameters * part.parameters;
    held.parameters += parameters;
    held.of_experts += part.of_experts ? parameters : 0;
    held.resident += Bytes{problem.model.operators[op].resident_bytes} * part.resident(stage.tensor_parallel);
    hold_gathered(part.gathered, stage.recomputes(op), held);
    const Bytes stash = problem.stash_bytes(op) * part.stash + part.gathered.kept;
    const Bytes again = stash * (stage.recomputes(op) ? 1 : part_made_again(problem, stage, op));
    held.kept += stash - again;
    if (again.value > 0) {
      segment = (number == problem.segments[op] ? segment : Bytes{0}) + again;
      number = problem.segments[op];
      held.workspace = std::max(held.workspace, segment);
      held.recomputed += again;
    }
    held.for_deferred += part.deferred ? problem.weight_bytes(op) * part.weight_stash : Bytes{0};
    held.for_weights = held.for_weights.value_or(Bytes{0}) + problem.weight_bytes(op) * part.weight_stash;
  }
  if (stage.recompute != Recompute::none) {
    for (const KeptBytes& kept : kept_by_operators(problem, stage, split)) {
      held.read_again += kept.read_again;
    }
    held.kept += held.read_again;
  }
  return held;
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

int sharing_replicas(const Training& training, const Stage& stage) {
  const Sharding& sharding = training.sharding;
  return sharding.on() ? sharding.sharing(static_cast<int>(stage.replicas()) * sharding.per_device) : 1;
}

// Those that share what belongs to experts: of as many only those that have the same ones.
int sharing_experts(const Training& training, const Stage& stage) {
  return std::max(1, sharing_replicas(training, stage) / stage.axes().expert_replicas());
}

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

// What a replica has of that which replicas share, to the part that stage_memory() counts on: of what it holds of dense
// layers and of experts, by their numbers of parameters.
double part_of_shared(const Training& training, const Stage& stage, const Held& held) {
  if (!training.sharding.on() || held.parameters == 0) {
    return training.sharding.on() ? training.sharding.replicas / static_cast<double>(sharing_replicas(training, stage))
                                  : 1;
  }
  const double experts = held.of_experts / held.parameters;
  return training.sharding.replicas *
         ((1 - experts) / sharing_replicas(training, stage) + experts / sharing_experts(training, stage));
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

// What the host holds in place of the device, or for it.
void leave_to_host(const Problem& problem, double steps, const std::vector<ShardUnit>& units, double share,
                   StageMemory& memory) {
  const Offload& offload = problem.training.offload;
  if (!offload.on()) {
    return;
  }
  memory.host = host_bytes(problem.training, steps);
  if (offload.parameters) {
    memory.host += memory.frozen;
    memory.frozen = memory.frozen * (problem.training.sharding.parts_weights() ? 0 : 1);
  }
  Bytes away, away_read_again;
  for (const ShardUnit& unit : units) {
    away += unit.stash * share;
    away_read_again += unit.stash_read_again * share;
  }
  memory.host_per_micro_batch = away;
  memory.per_micro_batch = std::max(Bytes{0}, memory.per_micro_batch - away);
  memory.read_again = std::max(Bytes{0}, memory.read_again - away_read_again);
  memory.buffers += trip_buffers(units) * share;
}

// What a device of a replica holds for its share of a micro-batch.
StageMemory memory_of_replica(const Problem& problem, const Stage& stage, const Held& held,
                              const std::vector<ShardUnit>& units, Bytes incoming, Bytes outgoing, double share) {
  const StageAmounts amounts{held.parameters, held.resident, Activations{held.kept, Bytes{0}} * share, incoming * share,
                             outgoing * share};
  StageMemory memory = memory_of_stage(problem, amounts, Recompute::none); // its input is counted
  memory.workspace = held.workspace * share;                               // of this stage's own segments
  memory.recomputed = held.recomputed * share;
  memory.read_again = held.read_again * share;
  memory.for_deferred = held.for_deferred * share;
  memory.common_buffer = held.gathered * share; // of forwards; sums, gradients and their sums are as large
  memory.passing = std::max(held.gathered, held.choices) * share;
  memory.passing_again = std::max(held.gathered_again, held.choices_again) * share;
  if (!problem.model.memory_given) {
    const Sharding& sharding = problem.training.sharding;
    const double part = part_of_shared(problem.training, stage, held);
    memory.optimizer = memory.optimizer * part;
    memory.weights = memory.weights * (sharding.parts_weights() ? part : 1);
    memory.frozen = memory.frozen * (sharding.parts_weights() ? 1.0 / sharing_replicas(problem.training, stage) : 1);
    memory.gradients = memory.gradients * (sharding.parts_gradients() ? part : 1);
    memory.buffers += unit_buffers(problem.training, stage, units);
    if (sharding.secondary > 0 && stage.replicas() > 1) { // the second copy's part
      const Bytes all = Bytes{held.parameters * parameter_bytes(problem.training).weight} + held.resident;
      memory.buffers += all / sharding.secondary;
    }
    leave_to_host(problem, held.parameters * part, units, share, memory);
  }
  if (held.for_weights) {
    memory.for_weights = *held.for_weights * share;
  }
  return memory;
}

// Devices of the plan in each node, which share the node's host.
std::vector<int> devices_by_node(const Problem& problem, const Plan& plan) {
  std::vector<int> count(problem.platform.nodes.size(), 0);
  for (const DeviceId device : devices_of(plan)) {
    ++count[problem.platform.devices[device].node];
  }
  return count;
}

// What a device leaves to its host, which steps `steps` parameters as host_step() counts them, for `sharers` devices
// alike.
HostCost host_cost(const Problem& problem, DeviceId device, double steps, int sharers) {
  const Leg nowhere{{}, {}, BytesPerSecond{kInfinity}};
  const int node = problem.platform.devices[device].node;
  const Host& host = problem.platform.nodes[node].host;
  const HostStep step = host_step(problem.training, steps);
  const BytesPerSecond memory = host.memory_bandwidth / static_cast<double>(sharers);
  const FlopsPerSecond cores = host.core_speed * (static_cast<double>(host.cores) / sharers);
  const Seconds computing{std::isinf(cores.value) ? 0 : step.work / cores.value};
  return {.to_host = problem.router.to_host(device).value_or(nowhere),
          .from_host = problem.router.from_host(device).value_or(nowhere),
          .gradients = step.gradients,
          .weights = step.weights,
          .moved = step.moved,
          .step = std::max(computing, step.moved / memory),
          .memory = memory,
          .node = node};
}

// Times of kernels that make a unit's weights and gradients smaller before they are sent, and back: bound by memory.
// Gradients are made smaller, added up and made smaller again between the hops, and added up (Wang et al. 2023, 4.3).
std::vector<UnitKernels> unit_kernels(const Problem& problem, const Stage& stage, const std::vector<ShardUnit>& units,
                                      int sharing) {
  const Sharding& sharding = problem.training.sharding;
  const bool weights = sharding.quantized_weights == QuantizedWeights::int8;
  std::vector<UnitKernels> kernels;
  if ((!weights && !sharding.quantized_gradients) || stage.replicas() < 2) {
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
TensorSplit split_of(const Problem& problem, const Stage& stage, OperatorId deferred) {
  const GroupSpeed speed = speed_of_groups(problem, stage.devices, stage.axes(), largest_share(stage));
  TensorSplit split = std::get<TensorSplit>(split_tensors(problem, stage.operators, stage.axes(), speed));
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

// `sharers`: the plan's devices in each node. `fold`: whose costs are wanted; null: those of all replicas.
StageCost cost_stage(const Problem& problem, const Stage& stage, const std::vector<int>& sharers, Bytes incoming,
                     Bytes outgoing, Figures figures, const StageFold* fold, OperatorId deferred) {
  const TensorSplit split = split_of(problem, stage, deferred);
  const Held held = held_by(problem, stage, split);
  StageCost cost{.tensor_parallel = stage.tensor_parallel, .border_part = split.borders, .turns = stage.turns};
  const double each = parameter_bytes(problem.training).gradient;
  cost.gradients = Bytes{std::round((held.parameters - held.of_experts) * each)};
  cost.expert_gradients = Bytes{std::round(held.of_experts * each)};
  cost.axes = stage.axes();
  const double steps = held.parameters * part_of_shared(problem.training, stage, held);
  cost.units = shard_units(problem, stage, split);
  cost.only_offloads = !shares_by_unit(problem.training, stage);
  cost.gathered = gathered_part(problem, stage, split);
  const bool by_unit = copies_gradients_by_unit(problem.training.offload, problem.training.sharding, cost);
  if (stage.replicas() > 1) {
    cost.zero = problem.training.sharding.zero;
    cost.sharing = sharing_replicas(problem.training, stage);
  }
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
    Sums times;
    Seconds terms;
    if (figures == Figures::all) {
      times = known.of(replica, devices, cost.teams.slowest(at * devices.size(), devices.size()));
      if (times.passes != nullptr) {
        cost.groups.push_back({times.passes});
        terms = times.passes->terms.seconds;
      }
    }
    const StageMemory memory =
        memory_of_replica(problem, stage, held, cost.units, incoming * split.borders, outgoing * split.borders, share);
    for (const DeviceId device : devices) {
      const DeviceType& type = problem.platform.type_of(device);
      const ClippingTimes clipping = clipping_times(problem.training, steps, type);
      const Seconds stepping = optimizer_time(problem.training, steps, type);
      const Seconds launching = launching_fast / slowest_host(problem.platform, devices);
      const Seconds late = std::max(Seconds{0}, launching - times.ahead - stepping) + step_overhead(problem, stage);
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
std::string key_of(const Problem& problem, const Stage& stage, Bytes incoming, Bytes outgoing, Figures figures,
                   OperatorId deferred) {
  const auto& [operators, devices, shares, tensor_parallel, sequence_parallel, tensor_rule, recompute, recomputed,
               context, experts, turns, streams] = stage;
  const auto& [expert_ranks, expert_tensor] = experts;
  const auto& [context_ranks, context_rule, context_heads, context_order] = context;
  std::string key;
  const void* const whose = &problem;
  const auto add = [&key](const auto&... values) { (put(key, values), ...); };
  put_list(key, operators);
  put_list(key, devices);
  put_list(key, shares);
  put_list(key, recomputed);
  add(whose, incoming, outgoing, figures, deferred, tensor_parallel, sequence_parallel, tensor_rule, recompute,
      context_ranks, context_rule, context_heads, context_order, expert_ranks, expert_tensor, turns, streams);
  return key;
}

PlanCost cost_plan(const Problem& problem, const Plan& plan, Figures figures, const Fold* fold = nullptr,
                   KnownStages* known = nullptr) {
  PlanCost cost;
  cost.stages.resize(plan.stages.size());
  const Borders borders = cross_borders(problem, stage_of_operator(problem, plan), cost);
  const std::vector<int> sharers = devices_by_node(problem, plan);
  const OperatorId deferred = deferred_product(problem, plan);
  const bool may_be_known = known != nullptr && fold == nullptr && !problem.training.offload.on();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Bytes incoming = borders.incoming[s], outgoing = borders.outgoing[s];
    const auto made = [&] {
      return cost_stage(problem, plan.stages[s], sharers, incoming, outgoing, figures,
                        fold != nullptr ? &fold->stages[s] : nullptr, deferred);
    };
    cost.stages[s] =
        may_be_known ? known->find_or_make(key_of(problem, plan.stages[s], incoming, outgoing, figures, deferred), made)
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
