// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/shard_units.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/cost/memory.hpp"
#include "sim/plan/tensor_parallel.hpp"
#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

// [operator of the model]: the number of its numbered block, or -1; nothing if the model has none.
std::vector<int> numbers_of_blocks(const ModelGraph& model) {
  std::vector<int> numbers;
  int number = 0;
  for (const Block& block : blocks_of(model)) {
    if (!block.numbered) {
      continue;
    }
    numbers.resize(model.size(), -1);
    for (const OperatorId op : block.operators) {
      numbers[op] = number;
    }
    ++number;
  }
  return numbers;
}

// From the last unit on, as backward completes them, units count together until they fill a bucket.
std::vector<ShardUnit> fill_buckets(const std::vector<ShardUnit>& units, Bytes bucket) {
  std::vector<ShardUnit> filled;
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    const bool is_full = !filled.empty() && bucket.value > 0 && filled.back().all_gradients() >= bucket;
    if (filled.empty() || is_full) {
      filled.push_back(*unit);
    } else {
      filled.back().begin = unit->begin;
      filled.back().weights += unit->weights;
      filled.back().gradients += unit->gradients;
      filled.back().expert_weights += unit->expert_weights;
      filled.back().expert_gradients += unit->expert_gradients;
    }
  }
  std::reverse(filled.begin(), filled.end());
  return filled;
}

std::vector<double> parts_of(const std::vector<ShardUnit>& units, const std::vector<Seconds>& seconds) {
  const auto begin = seconds.begin();
  const double all = std::accumulate(begin, seconds.end(), Seconds{0}).value;
  std::vector<double> parts;
  for (const ShardUnit& unit : units) {
    const double own = std::accumulate(begin + static_cast<std::ptrdiff_t>(unit.begin),
                                       begin + static_cast<std::ptrdiff_t>(unit.end), Seconds{0})
                           .value;
    parts.push_back(all > 0 && std::isfinite(all) ? own / all : 1 / static_cast<double>(units.size()));
  }
  return parts;
}

// The most that so many units in a row have of something.
template <class Bytes_of> Bytes most_in_a_row(const std::vector<ShardUnit>& units, std::size_t row, Bytes_of bytes_of) {
  Bytes most;
  for (std::size_t first = 0; first < units.size(); ++first) {
    Bytes sum;
    for (std::size_t at = first; at < std::min(first + row, units.size()); ++at) {
      sum += bytes_of(units[at]);
    }
    most = std::max(most, sum);
  }
  return most;
}

} // namespace

std::vector<ShardUnit> shard_units(const Problem& problem, const Stage& stage, const TensorSplit& split) {
  const Sharding& sharding = problem.training.sharding;
  if (!sharding.by_unit() || stage.replicas() < 2) {
    return {};
  }
  const ParameterBytes each = parameter_bytes(problem.training);
  const std::vector<int> blocks = numbers_of_blocks(problem.model);
  std::vector<ShardUnit> units;
  for (std::size_t at = 0; at < stage.operators.size(); ++at) {
    const OperatorId op = stage.operators[at];
    const Operator& what = problem.model.operators[op];
    const double parameters = what.parameters * split.operators[at].parameters;
    // Frozen weights are gathered where weights are shared; else every replica has them all the time.
    const Bytes frozen = sharding.zero == Zero::weights
                             ? Bytes{what.resident_bytes} * split.operators[at].resident(stage.tensor_parallel)
                             : Bytes{0};
    const bool begins =
        blocks.empty() ? parameters > 0 || frozen.value > 0 : at == 0 || blocks[op] != blocks[stage.operators[at - 1]];
    if (units.empty() || (begins && (!blocks.empty() || units.back().all_weights().value > 0))) {
      units.push_back({at, at, Bytes{0}, Bytes{0}});
    }
    ShardUnit& unit = units.back();
    unit.end = at + 1;
    const bool of_experts = split.operators[at].of_experts;
    (of_experts ? unit.expert_weights : unit.weights) += Bytes{parameters * each.weight} + frozen;
    (of_experts ? unit.expert_gradients : unit.gradients) += Bytes{parameters * each.gradient};
  }
  return sharding.zero == Zero::weights ? units : fill_buckets(units, problem.training.gradient_bucket);
}

UnitParts parts_of(const std::vector<ShardUnit>& units, const OperatorSeconds& seconds) {
  return {parts_of(units, seconds.forward), parts_of(units, seconds.backward), parts_of(units, seconds.backward_input),
          parts_of(units, seconds.backward_weight), parts_of(units, seconds.recompute)};
}

std::vector<char> steps_that_gather(Reshard reshard, const std::vector<UnitStep>& steps) {
  std::vector<char> gathers(steps.size(), 0), present;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const auto [pass, unit] = steps[n];
    if (pass == UnitPass::weight) { // needs no weights
      continue;
    }
    present.resize(std::max(present.size(), static_cast<std::size_t>(unit) + 1), 0);
    gathers[n] = present[unit] != 0 ? 0 : 1;
    const bool is_next = pass != UnitPass::backward && n + 1 < steps.size() && steps[n + 1].unit == unit;
    const Reshard stays = pass == UnitPass::backward ? Reshard::after_step : Reshard::after_backward;
    present[unit] = is_next || reshard >= stays ? 1 : 0;
  }
  return gathers;
}

std::vector<char> steps_that_reduce(Reduce reduce, const std::vector<UnitStep>& steps, UnitPass completes) {
  std::vector<char> reduces(steps.size(), 0), is_reduced;
  for (std::size_t n = steps.size(); n-- > 0;) {
    const auto [pass, unit] = steps[n];
    is_reduced.resize(std::max(is_reduced.size(), static_cast<std::size_t>(unit) + 1), 0);
    if (pass == completes && (reduce == Reduce::each_micro_batch || is_reduced[unit] == 0)) {
      reduces[n] = is_reduced[unit] = 1;
    }
  }
  return reduces;
}

Bytes unit_buffers(const Sharding& sharding, const std::vector<ShardUnit>& units) {
  Bytes buffers;
  if (sharding.parts_weights()) {
    buffers += most_in_a_row(units, static_cast<std::size_t>(sharding.prefetch) + 1,
                             [](const ShardUnit& unit) { return unit.all_weights(); });
  }
  if (sharding.parts_gradients()) {
    buffers += most_in_a_row(units, 2, [](const ShardUnit& unit) { return unit.all_gradients(); });
  }
  return buffers;
}

} // namespace stagecraft
