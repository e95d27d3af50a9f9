// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_cost/shard_units.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "sim/cost/memory.hpp"
#include "sim/plan/stage_cost/passes/host_launches.hpp"
#include "sim/plan/stage_cost/passes/kept_bytes.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
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

// Whether passes of the stage run unit by unit.
bool runs_by_unit(const Training& training, const Stage& stage) {
  const Offload& offload = training.offload;
  return shares_by_unit(training, stage) || offload.activations > 0 || offload.parameters ||
         (offload.gradients && training.sharding.zero >= Zero::gradients);
}

// The part that is sent of weights of which parts are.
double part_of_both(Bytes one, double part_of_one, Bytes other, double part_of_other) {
  const Bytes sum = one + other;
  return part_of_one == part_of_other || sum.value == 0 ? part_of_one
                                                        : (one * part_of_one + other * part_of_other) / sum;
}

// What a unit gathers and reduces counts with what another does.
void add_bytes(const ShardUnit& from, ShardUnit& to) {
  to.gathered = {part_of_both(to.weights, to.gathered.dense, from.weights, from.gathered.dense),
                 part_of_both(to.expert_weights, to.gathered.experts, from.expert_weights, from.gathered.experts)};
  to.weights += from.weights;
  to.gradients += from.gradients;
  to.expert_weights += from.expert_weights;
  to.expert_gradients += from.expert_gradients;
  to.late_weights += from.late_weights;
}

// The same where units stay apart, since each leaves its activations: the first of those that count together gathers
// and reduces for all.
void fill_first_of_buckets(std::vector<ShardUnit>& units, Bytes bucket) {
  for (std::size_t at = units.size(); at-- > 1;) {
    if (bucket.value > 0 && units[at].all_gradients() >= bucket) {
      continue;
    }
    ShardUnit& from = units[at];
    add_bytes(from, units[at - 1]);
    from.weights = from.gradients = from.expert_weights = from.expert_gradients = from.late_weights = Bytes{0};
  }
}

// Bytes of a weight in 8 bits with its part of a scale: block by block there is one of 4 B for 128 x 128.
double fp8_weight_bytes(Precision products) {
  constexpr double kBlock = 128;
  return products == Precision::fp8_block ? 1 + 4 / (kBlock * kBlock) : row_of(products).bytes;
}

// The part of the bytes of an operator's weights that is gathered.
double sent_part(const Training& training, const Operator& op, double stored) {
  switch (training.sharding.quantized_weights) {
  case QuantizedWeights::int8:
    return kInt8Bytes / stored;
  case QuantizedWeights::fp8:
    return op.products && training.fp8->products ? fp8_weight_bytes(*training.fp8->products) / stored : 1;
  default:
    return 1;
  }
}

// The parts that are sent of weights of several operators.
class GatheredSum {
public:
  explicit GatheredSum(const Problem& problem) : problem_(problem), stored_(parameter_bytes(problem.training).weight) {}

  // Frozen weights that are held in 8 bits alone are sent as they are.
  void add(const Operator& op, bool of_experts, Bytes trained, Bytes frozen) {
    Of& of = of_experts ? experts_ : dense_;
    const double part = sent_part(problem_.training, op, stored_);
    of.all += trained + frozen;
    of.sent += trained * part + frozen * (problem_.training.fp8_weights && op.products ? 1 : part);
  }
  GatheredPart part() const { return {dense_.part(), experts_.part()}; }

private:
  struct Of {
    Bytes all, sent;
    double part() const { return all.value > 0 ? sent / all : 1; }
  };
  const Problem& problem_;
  double stored_; // bytes of a weight
  Of dense_, experts_;
};

// Marks the numbered blocks whose activations are left to the host.
void leave_activations(const Problem& problem, const Stage& stage, const TensorSplit& split,
                       const std::vector<int>& blocks, std::vector<ShardUnit>& units) {
  const std::vector<KeptBytes> kept = kept_by_operators(problem, stage, split);
  const auto is_numbered = [&](const ShardUnit& unit) {
    return !blocks.empty() && blocks[stage.operators[unit.begin]] >= 0;
  };
  const auto numbered = static_cast<int>(std::count_if(units.begin(), units.end(), is_numbered));
  int left = std::min(problem.training.offload.activations, numbered);
  const auto stay = static_cast<std::size_t>(numbered - left);
  for (ShardUnit& unit : units) {
    if (left == 0 || !is_numbered(unit)) {
      continue;
    }
    --left;
    unit.blocks_that_stay = stay;
    for (std::size_t at = unit.begin; at < unit.end; ++at) {
      unit.stash += kept[at].all;
      unit.stash_read_again += kept[at].read_again;
    }
  }
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
      add_bytes(*unit, filled.back());
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

// Of a rank's product of experts, what of its weights is gathered late: all but the first bucket. A bucket takes whole
// experts until it is full (Megatron Core, _ParamAndGradBuffer).
Bytes late_weights(const Training& training, const Operator& op, const RankShare& share, const ParameterBytes& each) {
  const double parameters = op.parameters * share.parameters;
  const double bucket = training.gradient_bucket.value / each.gradient;
  if (!training.sharding.late_experts || !share.of_experts || parameters == 0 || bucket == 0) {
    return {};
  }
  const double expert = parameters / products_of(op, share.shard);
  return Bytes{std::max(0.0, parameters - expert * std::ceil(bucket / expert)) * each.weight};
}

// What a replica holds of a unit's weights between their gather and when it gives them up: 8 bits as they come, where
// products multiply these.
Bytes held_while_gathered(const Sharding& sharding, const ShardUnit& unit) {
  return sharding.quantized_weights == QuantizedWeights::fp8
             ? unit.weights * unit.gathered.dense + unit.expert_weights * unit.gathered.experts
             : unit.all_weights();
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

bool shares_by_unit(const Training& training, const Stage& stage) {
  return training.sharding.by_unit() && stage.replicas() > 1;
}

GatheredPart gathered_part(const Problem& problem, const Stage& stage, const TensorSplit& split) {
  if (problem.training.sharding.quantized_weights == QuantizedWeights::none) {
    return {};
  }
  const double each = parameter_bytes(problem.training).weight;
  GatheredSum sum(problem);
  for (std::size_t at = 0; at < stage.operators.size(); ++at) {
    const Operator& op = problem.model.operators[stage.operators[at]];
    const RankShare& part = split.operators[at];
    sum.add(op, part.of_experts, Bytes{op.parameters * part.parameters * each}, Bytes{0});
  }
  return sum.part();
}

std::vector<ShardUnit> shard_units(const Problem& problem, const Stage& stage, const TensorSplit& split) {
  const Sharding& sharding = problem.training.sharding;
  if (!runs_by_unit(problem.training, stage)) {
    return {};
  }
  const ParameterBytes each = parameter_bytes(problem.training);
  const std::vector<int> blocks = numbers_of_blocks(problem.model);
  std::vector<ShardUnit> units;
  std::vector<GatheredSum> sent; // [unit]
  for (std::size_t at = 0; at < stage.operators.size(); ++at) {
    const OperatorId op = stage.operators[at];
    const Operator& what = problem.model.operators[op];
    const double parameters = what.parameters * split.operators[at].parameters;
    // Frozen weights are gathered where weights are shared; else every replica has them all the time. Copies in 8 bits
    // of what is gathered are made by each replica.
    const Bytes held{std::min(what.resident_bytes, what.frozen * each.weight)};
    const Bytes frozen =
        sharding.zero == Zero::weights ? held * split.operators[at].resident(stage.tensor_parallel) : Bytes{0};
    const bool begins =
        blocks.empty() ? parameters > 0 || frozen.value > 0 : at == 0 || blocks[op] != blocks[stage.operators[at - 1]];
    if (units.empty() || (begins && (!blocks.empty() || units.back().all_weights().value > 0))) {
      units.push_back({at, at, Bytes{0}, Bytes{0}});
      sent.emplace_back(problem);
    }
    ShardUnit& unit = units.back();
    unit.end = at + 1;
    const bool of_experts = split.operators[at].of_experts;
    const Bytes trained{parameters * each.weight};
    (of_experts ? unit.expert_weights : unit.weights) += trained + frozen;
    (of_experts ? unit.expert_gradients : unit.gradients) += Bytes{parameters * each.gradient};
    unit.late_weights += late_weights(problem.training, what, split.operators[at], each);
    sent.back().add(what, of_experts, trained, frozen);
  }
  for (std::size_t u = 0; u < units.size(); ++u) {
    units[u].gathered = sent[u].part();
    units[u].reduced = sharding.quantized_gradients ? kInt4Bytes / each.gradient : 1;
  }
  if (problem.training.offload.activations > 0) {
    leave_activations(problem, stage, split, blocks, units);
    if (sharding.zero != Zero::weights) {
      fill_first_of_buckets(units, problem.training.gradient_bucket);
    }
    return units;
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
    const auto [pass, unit, fill] = steps[n];
    if (n > 0 && fill != steps[n - 1].fill) {
      present.assign(present.size(), 0);
    }
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
    const auto [pass, unit, fill] = steps[n];
    if (n + 1 < steps.size() && fill != steps[n + 1].fill) {
      is_reduced.assign(is_reduced.size(), 0);
    }
    is_reduced.resize(std::max(is_reduced.size(), static_cast<std::size_t>(unit) + 1), 0);
    if (pass == completes && (reduce == Reduce::each_micro_batch || is_reduced[unit] == 0)) {
      reduces[n] = is_reduced[unit] = 1;
    }
  }
  return reduces;
}

std::vector<UnitTrip> trips_of(const std::vector<UnitStep>& steps, const std::vector<std::int32_t>& micro_batches,
                               const std::vector<std::size_t>& steps_away) {
  std::vector<UnitTrip> trips;
  std::map<std::pair<int, std::int32_t>, std::size_t> away; // unit and micro-batch -> its trip
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const auto [pass, unit, fill] = steps[n];
    const std::pair key{unit, micro_batches[n]};
    const std::size_t time = steps_away[static_cast<std::size_t>(unit)];
    if (time == 0) {
      continue;
    }
    if (pass == UnitPass::forward) {
      away[key] = trips.size();
      trips.push_back({.unit = unit, .from = n, .to = n, .gone_by = n + time});
    } else if (const auto known = away.find(key); known != away.end()) {
      UnitTrip& trip = trips[known->second];
      trip.to = n;
      const std::size_t ahead = pass == UnitPass::backward ? time : kUnitsToLeave;
      trip.back_after = std::max(trip.from, n - std::min(n, ahead));
      away.erase(known);
    }
  }
  std::erase_if(trips, [](const UnitTrip& trip) { return trip.to - trip.from <= kUnitsToLeave; });
  for (UnitTrip& trip : trips) {
    trip.gone_by = std::min(trip.gone_by, trip.to - 1);
  }
  return trips;
}

Bytes unit_buffers(const Training& training, const Stage& stage, const std::vector<ShardUnit>& units) {
  const Sharding& sharding = training.sharding;
  const bool several = stage.replicas() > 1;
  Bytes buffers;
  if (sharding.parts_weights() && (several || training.offload.parameters)) {
    const int ahead = std::max(sharding.ahead(false), sharding.ahead(true));
    buffers += most_in_a_row(units, static_cast<std::size_t>(ahead) + 1,
                             [&](const ShardUnit& unit) { return held_while_gathered(sharding, unit); });
  }
  if (sharding.parts_gradients() && (several || training.offload.gradients)) {
    buffers += most_in_a_row(units, 2, [](const ShardUnit& unit) { return unit.all_gradients(); });
  }
  return buffers;
}

Bytes trip_buffers(const std::vector<ShardUnit>& units) {
  const auto stash_of = [](const ShardUnit& unit) { return unit.stash; };
  std::size_t most = 0;
  for (const ShardUnit& unit : units) {
    most = std::max(most, unit.steps_away() - std::min(unit.steps_away(), unit.blocks_that_stay));
  }
  return 2 * most_in_a_row(units, most, stash_of);
}

} // namespace stagecraft
