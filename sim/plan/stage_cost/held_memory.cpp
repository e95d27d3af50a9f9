// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/held_memory.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "sim/plan/stage_cost/passes/host_launches.hpp"
#include "sim/plan/stage_cost/passes/kept_bytes.hpp"

namespace stagecraft {
namespace {

// Sizes of a product's weights, of KernelOp::gemm.
constexpr std::size_t kColumns = 2, kDepth = 3;

// Where ranks get all tokens they hold those of one mixture at a time; of what comes with them, backward keeps a part.
void hold_gathered(const GatheredTokens& gathered, bool again, HeldMemory& held) {
  held.gathered = std::max(held.gathered, gathered.tokens);
  held.choices = std::max(held.choices, gathered.choices);
  held.gathered_again = std::max(held.gathered_again, again ? gathered.tokens : Bytes{0});
  held.choices_again = std::max(held.choices_again, again ? gathered.choices : Bytes{0});
}

// Bytes of the weights of one of the operator's products, as a device has it; 0: it has none that are trained.
Bytes weights_of_product(const Problem& problem, OperatorId op, const RankShare& part) {
  const Operator& what = problem.model.operators[op];
  if (what.kind != KernelKind::matmul || what.forward.calls.empty()) {
    return {};
  }
  return Bytes{parameter_bytes(problem.training).weight * what.parameters * part.parameters /
               products_of(what, part.shard)};
}

// Parameters of each tensor that is trained, as a device has them; frameworks have a weight of its own for each expert.
// Where an operator's tensors are not known it has one.
void add_tensors(const Operator& what, const RankShare& part, std::vector<double>& tensors) {
  const auto alike = static_cast<std::size_t>(products_of(what, part.shard));
  const double parameters = what.parameters * part.parameters;
  std::vector<double> sizes;
  for (const ParameterSignature& one :
       what.signature ? what.signature->parameters : std::vector<ParameterSignature>{}) {
    sizes.push_back(one.stepped() ? elements_of(one.dimensions) : 0);
  }
  sizes.resize(std::max<std::size_t>(1, sizes.size()), what.signature ? 0 : parameters);
  const double all = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  for (const double size : sizes) {
    if (size > 0) {
      tensors.insert(tensors.end(), alike, parameters * (size / all) / static_cast<double>(alike));
    }
  }
}

// What each replica steps of all but experts, and of these, where each steps whole tensors.
void share_out_tensors(const Problem& problem, const Stage& stage, const TensorSplit& split, HeldMemory& held) {
  if (!problem.training.sharding.broadcasts()) {
    return;
  }
  std::vector<double> dense, of_experts;
  for (std::size_t i = 0; i < stage.operators.size(); ++i) {
    add_tensors(problem.model.operators[stage.operators[i]], split.operators[i],
                split.operators[i].of_experts ? of_experts : dense);
  }
  held.stepped = share_out_whole(std::move(dense), sharing_replicas(problem.training, stage));
  held.stepped_experts = share_out_whole(std::move(of_experts), sharing_experts(problem.training, stage));
}

// Transformer Engine keeps one for each shape, whatever weights have it (`get_dummy_wgrad`, its pull request 1651).
Bytes placeholders_of(const Problem& problem, const Stage& stage, const TensorSplit& split) {
  const Training& training = problem.training;
  if (!training.fused_gradient_sums || !training.gradient_placeholders) {
    return {};
  }
  std::map<std::array<double, 2>, Bytes> by_shape;
  for (std::size_t i = 0; i < stage.operators.size(); ++i) {
    const Bytes weights = weights_of_product(problem, stage.operators[i], split.operators[i]);
    if (weights.value > 0) {
      const KernelShape& shape = problem.model.operators[stage.operators[i]].forward.calls.front().shape;
      by_shape[{shape[kColumns], shape[kDepth]}] = weights;
    }
  }
  return std::accumulate(by_shape.begin(), by_shape.end(), Bytes{},
                         [](Bytes sum, const auto& one) { return sum + one.second; });
}

// The amounts that the model's file gives.
HeldMemory held_as_given(const Problem& problem, const Stage& stage) {
  HeldMemory held;
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

} // namespace

HeldMemory held_by(const Problem& problem, const Stage& stage, const TensorSplit& split) {
  if (!problem.model.configurations.empty()) {
    return held_as_given(problem, stage);
  }
  HeldMemory held;
  held.placeholders = placeholders_of(problem, stage, split);
  share_out_tensors(problem, stage, split, held);
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

int sharing_replicas(const Training& training, const Stage& stage) {
  const Sharding& sharding = training.sharding;
  return sharding.on() ? sharding.sharing(static_cast<int>(stage.replicas()) * sharding.per_device) : 1;
}

int sharing_experts(const Training& training, const Stage& stage) {
  return std::max(1, sharing_replicas(training, stage) / stage.axes().expert_replicas());
}

double part_of_shared(const Training& training, const Stage& stage, const HeldMemory& held) {
  if (!training.sharding.on() || held.parameters == 0) {
    return training.sharding.on() ? training.sharding.replicas / static_cast<double>(sharing_replicas(training, stage))
                                  : 1;
  }
  const double experts = held.of_experts / held.parameters;
  if (!held.stepped.empty()) { // others wait for the one that has most
    const double most = held.stepped_experts.empty() ? 1.0 : held.stepped_experts.front().part;
    return training.sharding.replicas * ((1 - experts) * held.stepped.front().part + experts * most);
  }
  return training.sharding.replicas *
         ((1 - experts) / sharing_replicas(training, stage) + experts / sharing_experts(training, stage));
}

StageMemory memory_of_replica(const Problem& problem, const Stage& stage, const HeldMemory& held,
                              const std::vector<ShardUnit>& units, Bytes incoming, Bytes outgoing, double share) {
  const StageAmounts amounts{held.parameters, held.resident, Activations{held.kept, Bytes{0}} * share, incoming * share,
                             outgoing * share};
  StageMemory memory = memory_of_stage(problem, amounts, Recompute::none); // its input is counted
  memory.workspace = held.workspace * share;                               // of this stage's own segments
  memory.recomputed = held.recomputed * share;
  memory.read_again = held.read_again * share;
  memory.for_deferred = held.for_deferred * share;
  // Of forwards; sums, gradients and their sums are as large.
  memory.common_buffer = held.gathered * share + held.placeholders;
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

} // namespace stagecraft
