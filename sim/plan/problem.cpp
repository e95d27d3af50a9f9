// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/problem.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

void fill_times(Problem& problem) {
  const int n = problem.model.size();
  for (const DeviceType& type : problem.platform.types) {
    std::vector<double> forward(n, kInfinity);
    std::vector<double> input(n, kInfinity);
    std::vector<double> weight(n, kInfinity);
    for (OperatorId op = 0; op < n; ++op) {
      const auto time = problem.cost.time(op, type, problem.samples, problem.training.precision);
      if (time) {
        forward[op] = time->forward.value;
        input[op] = time->backward_input.value;
        weight[op] = time->backward_weight.value;
      }
    }
    problem.forward.push_back(std::move(forward));
    problem.backward_input.push_back(std::move(input));
    problem.backward_weight.push_back(std::move(weight));
  }
}

double whole_seconds(const Problem& problem, std::size_t type, OperatorId op) {
  const double again = problem.counts_again(op) ? problem.forward[type][op] : 0;
  return problem.forward[type][op] + problem.backward_input[type][op] + problem.backward_weight[type][op] + again;
}

Activations whole_stash(const Problem& problem, OperatorId op) {
  const Bytes stash = problem.stash_bytes(op);
  const auto& users = problem.model.successors[op];
  const bool read_again = std::any_of(users.begin(), users.end(), [&](OperatorId user) {
    return problem.recomputes(user) && (!problem.recomputes(op) || problem.segments[user] != problem.segments[op]);
  });
  if (problem.recomputes(op)) {
    return !problem.block_numbers.empty() ? Activations{read_again ? problem.output_bytes(op) : Bytes{0}, Bytes{0}}
                                          : Activations{Bytes{0}, stash};
  }
  const Bytes again = stash * part_made_again(problem, op, [&](OperatorId other) { return problem.recomputes(other); });
  return {stash - again + (read_again ? problem.output_bytes(op) : Bytes{0}),
          problem.block_numbers.empty() ? again : Bytes{0}};
}

// Blocks to restore one by one: the numbered ones, or, in a model of n operators without any, √n of so many operators
// (Chen et al. 2016, "Training deep nets with sublinear memory cost").
std::vector<int> blocks_to_restore(const ModelGraph& model) {
  std::vector<int> numbers = block_numbers(model);
  if (std::all_of(numbers.begin(), numbers.end(), [](int number) { return number < 0; })) {
    const int length = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(numbers.size()))));
    for (std::size_t op = 0; op < numbers.size(); ++op) {
      numbers[op] = static_cast<int>(op) / length;
    }
  }
  return numbers;
}

// Blocks in a row, so many in a segment. What is in none of them is one of its own.
void fill_segments(Problem& problem) {
  const RecomputeChoice& choice = problem.training.recompute;
  const bool named = choice.what == Recompute::selective && choice.blocks == 0 && !choice.rule.early;
  const int together = named ? 1 : choice.blocks;
  problem.segments.assign(problem.model.size(), 0);
  if (together > 0) {
    problem.block_numbers = named ? block_numbers(problem.model) : blocks_to_restore(problem.model);
    std::transform(problem.block_numbers.begin(), problem.block_numbers.end(), problem.segments.begin(),
                   [&](int number) { return number < 0 ? -1 : number / together; });
  }
}

void fill_operators(Problem& problem) {
  for (const Operator& op : problem.model.operators) {
    problem.recomputed.push_back(selects(problem.training.recompute, op) ? 1 : 0);
  }
  fill_segments(problem);
  problem.whole.resize(problem.platform.types.size());
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    for (std::size_t type = 0; type < problem.whole.size(); ++type) {
      problem.whole[type].push_back(whole_seconds(problem, type, op));
    }
    problem.stashes.push_back(whole_stash(problem, op));
  }
}

void fill_prefix(Problem& problem) {
  const int n = problem.model.size();
  Prefix& prefix = problem.prefix;
  for (std::size_t type = 0; type < problem.platform.types.size(); ++type) {
    std::vector<double> sums(n + 1, 0.0);
    for (OperatorId op = 0; op < n; ++op) {
      sums[op + 1] = sums[op] + problem.seconds(static_cast<int>(type), op);
    }
    prefix.seconds.push_back(std::move(sums));
  }
  prefix.parameters.assign(n + 1, 0.0);
  prefix.resident_bytes.assign(n + 1, 0.0);
  prefix.stash.assign(n + 1, {});
  prefix.cut_bytes.assign(n + 1, 0.0);
  for (OperatorId op = 0; op < n; ++op) {
    prefix.parameters[op + 1] = prefix.parameters[op] + problem.model.operators[op].parameters;
    prefix.resident_bytes[op + 1] = prefix.resident_bytes[op] + problem.model.operators[op].resident_bytes;
    prefix.stash[op + 1] = prefix.stash[op];
    prefix.stash[op + 1] += problem.stash(op);
    const auto& users = problem.model.successors[op];
    if (!users.empty()) {
      for (int k = op + 1; k <= users.back(); ++k) {
        prefix.cut_bytes[k] += problem.output_bytes(op).value;
      }
    }
  }
}

} // namespace

Bytes Problem::output_bytes(OperatorId op) const {
  return Bytes{std::ceil(samples * model.operators[op].output_elements * row_of(training.precision).bytes - 1e-6)};
}

Bytes Problem::stash_bytes(OperatorId op) const {
  return Bytes{samples * model.operators[op].stash_elements * row_of(training.precision).bytes};
}

Bytes Problem::weight_bytes(OperatorId op) const {
  const Operator& what = model.operators[op];
  if (what.weight_elements < 0) {
    return what.parameters > 0 ? stash_bytes(op) : Bytes{0};
  }
  return Bytes{samples * what.weight_elements * row_of(training.precision).bytes};
}

Bytes Problem::input_bytes() const { return Bytes{samples * model.input_elements * row_of(training.precision).bytes}; }

Bytes Problem::cut_bytes(const std::vector<char>& inside) const {
  Bytes sum;
  for (OperatorId op = 0; op < model.size(); ++op) {
    const auto& users = model.successors[op];
    if (inside[op] != 0 &&
        std::any_of(users.begin(), users.end(), [&](OperatorId user) { return inside[user] == 0; })) {
      sum += output_bytes(op);
    }
  }
  return sum;
}

Problem::Border Problem::border(const std::vector<char>& inside) const {
  Border sum;
  for (OperatorId op = 0; op < model.size(); ++op) {
    const auto& users = model.successors[op];
    const bool crosses =
        std::any_of(users.begin(), users.end(), [&](OperatorId user) { return inside[user] != inside[op]; });
    (inside[op] != 0 ? sum.outgoing : sum.incoming) += crosses ? output_bytes(op) : Bytes{0};
    if (inside[op] != 0 && model.predecessors[op].empty()) {
      sum.incoming += input_bytes();
    }
  }
  return sum;
}

std::vector<int> Problem::types_of(const std::vector<DeviceId>& devices) const {
  std::vector<int> types;
  for (const DeviceId device : devices) {
    types.push_back(type_index(device));
  }
  std::sort(types.begin(), types.end());
  types.erase(std::unique(types.begin(), types.end()), types.end());
  return types;
}

Problem make_problem(const ModelGraph& model, const Platform& platform, const CostModel& cost, const Training& training,
                     Router& router, int micro_batches) {
  Problem problem{.model = model, .platform = platform, .cost = cost, .training = training, .router = router};
  problem.micro_batches = micro_batches;
  problem.samples = static_cast<double>(training.global_batch) / micro_batches;
  // With configurations, replicas take whole micro-batches.
  problem.divisible_at_will = (!model.profiles.empty() && training.global_batch == 1) || !model.configurations.empty();
  fill_times(problem);
  fill_operators(problem);
  fill_prefix(problem);
  return problem;
}

double part_made_again(const Problem& problem, OperatorId op, const std::function<bool(OperatorId)>& again) {
  double part = 0;
  for (const KeptInput& kept : problem.model.operators[op].kept_inputs) {
    const bool made_again = problem.segments[kept.maker] == problem.segments[op] && again(kept.maker) &&
                            !mixes_tokens(problem.model.operators[kept.maker].kind);
    part += made_again ? kept.part : 0;
  }
  return std::min(part, 1.0);
}

StageMemory memory_of_stage(const Problem& problem, const StageAmounts& amounts, Recompute recompute) {
  if (!problem.model.memory_given) {
    StageMemory memory = stage_memory(problem.training, amounts.parameters, amounts.stash, amounts.incoming,
                                      amounts.outgoing, recompute);
    memory.frozen = amounts.resident;
    return memory;
  }
  StageMemory memory = stage_memory(problem.training, 0, amounts.stash, amounts.incoming, Bytes{0}, recompute);
  memory.optimizer = amounts.resident; // held once, however many versions of the weights the schedule keeps
  memory.buffers = Bytes{0};
  return memory;
}

std::string missing_kernel(const Problem& problem, int type, const std::vector<OperatorId>& operators) {
  for (const OperatorId op : operators) {
    if (std::isinf(problem.forward[type][op])) {
      const Operator& what = problem.model.operators[op];
      return "operator '" + what.name + "' (" + std::string(row_of(what.kind).name) + ", " +
             std::string(row_of(what.products.value_or(problem.training.precision)).name) +
             ") has no kernel on device type '" + problem.platform.types[type].name + "'";
    }
  }
  return "";
}

} // namespace stagecraft
