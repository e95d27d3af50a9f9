// SPDX-License-Identifier: Apache-2.0
#include "sim/study/study_costs.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/base/improves.hpp"
#include "sim/cost/alike_times.hpp"
#include "sim/plan/lower_bound.hpp"

namespace stagecraft {
namespace {

// The numbers of micro-batches that any run of the study has.
std::set<int> tried_counts(const Study& study) {
  std::set<int> counts(study.training.micro_batches.begin(), study.training.micro_batches.end());
  for (const StrategyRow* strategy : study.strategies) {
    const std::vector<int> own = micro_batches_of(study, strategy);
    counts.insert(own.begin(), own.end());
  }
  return counts;
}

// The least bound over these numbers.
template <class Bound> Seconds least_bound(const Study& study, Bound&& bound) {
  std::optional<Seconds> least;
  for (const int count : tried_counts(study)) {
    const Seconds one = bound(count);
    least = least ? std::min(*least, one) : one;
  }
  return *least;
}

} // namespace

StudyCosts::StudyCosts(const Study& study) : study_(study), router_(study.platform) {
  devices_.resize(study.platform.devices.size());
  std::iota(devices_.begin(), devices_.end(), 0);
  for (const RecomputeChoice& choice : study.training.recomputes) {
    trainings_.push_back(study.training);
    trainings_.back().recompute = choice;
  }
  const auto& speeds = study.believed_speeds;
  if (std::any_of(speeds.begin(), speeds.end(), [](double speed) { return speed != 1; })) {
    believed_ = at_speeds(study.platform, *study.cost, speeds);
  }
}

const Platform& StudyCosts::platform_of(FitChange change) {
  if (change != FitChange::unlimited_memory) {
    return study_.platform;
  }
  if (!unlimited_) {
    unlimited_ = study_.platform;
    for (DeviceType& type : unlimited_->types) {
      type.memory = Bytes{kInfinity};
    }
  }
  return *unlimited_;
}

const Training& StudyCosts::training_of(FitChange change, int recompute) {
  const Training& asked = training(recompute);
  if (change == FitChange::none || change == FitChange::unlimited_memory) {
    return asked;
  }
  const auto [slot, is_new] = changed_.try_emplace({change, recompute}, asked);
  Training& changed = slot->second;
  if (change == FitChange::block_recompute) {
    changed.recompute = {.what = Recompute::selective, .blocks = 1};
  } else if (change == FitChange::full_recompute) {
    changed.recompute.what = Recompute::full;
    changed.recompute.first = 0;
    changed.offload.activations = 0; // nothing of blocks is kept
  } else if (const std::optional<ParallelDegrees> degrees = is_new ? changed_degrees(change) : std::nullopt) {
    changed.parallel = degrees;
    changed.sharding = sharding_of(*degrees, static_cast<int>(devices_.size()));
  }
  return changed;
}

std::optional<ParallelDegrees> StudyCosts::changed_degrees(FitChange change) const {
  if (!study_.training.parallel || !study_.training.parallel->ranks.empty()) {
    return std::nullopt;
  }
  ParallelDegrees degrees = *study_.training.parallel;
  const auto found = mesh_of(degrees, static_cast<int>(devices_.size()));
  const Mesh* mesh = std::get_if<Mesh>(&found);
  if (mesh == nullptr || mesh->data < 2) {
    return std::nullopt;
  }
  Zero& zero = degrees.sharding.zero;
  if (change == FitChange::share_states && zero == Zero::none) {
    zero = Zero::states;
    return degrees;
  }
  if (change == FitChange::share_weights && zero < Zero::weights) {
    degrees.sharding = {.zero = Zero::weights, .group = degrees.sharding.group};
    return degrees;
  }
  const bool tensor = change == FitChange::more_tensor;
  if (mesh->data % 2 != 0 || degrees.sharding.group > 0 || (!tensor && change != FitChange::more_pipeline) ||
      (!tensor && degrees.layers && !degrees.layers->by_time())) {
    return std::nullopt;
  }
  degrees.data = mesh->data / 2;
  degrees.tensor = mesh->tensor * (tensor ? 2 : 1);
  degrees.pipeline = mesh->pipeline * (tensor ? 1 : 2);
  return degrees;
}

const Problem& StudyCosts::problem(int micro_batches, int recompute, FitChange change) {
  std::unique_ptr<Problem>& slot = problems_[{micro_batches, recompute, change}];
  if (!slot) {
    slot = std::make_unique<Problem>(make_problem(*study_.model, platform_of(change), *study_.cost,
                                                  training_of(change, recompute), router_, micro_batches));
  }
  return *slot;
}

const Problem& StudyCosts::believed(int micro_batches, int recompute) {
  if (!believed_) {
    return problem(micro_batches, recompute);
  }
  std::unique_ptr<Problem>& slot = believed_problems_[{micro_batches, recompute, FitChange::none}];
  if (!slot) {
    slot = std::make_unique<Problem>(make_problem(*study_.model, believed_->platform, *believed_->cost,
                                                  training(recompute), router_, micro_batches));
  }
  return *slot;
}

const std::vector<OperatorError>& StudyCosts::errors(int micro_batches, int type) {
  const auto [entry, added] = errors_.try_emplace({micro_batches, type});
  if (added) {
    const Problem& asked = problem(micro_batches);
    const std::vector<OperatorId> first = first_alike(asked.cost, asked.model.size());
    std::vector<OperatorError>& errors = entry->second;
    for (OperatorId op = 0; op < asked.model.size(); ++op) {
      errors.push_back(first[op] < op
                           ? errors[first[op]]
                           : asked.cost.error(op, asked.platform.types[type], asked.samples, asked.training.precision));
    }
  }
  return entry->second;
}

Seconds StudyCosts::single_device_seconds() {
  if (single_) {
    return *single_;
  }
  std::set<int> counts = tried_counts(study_);
  counts.insert(1);
  Seconds best{kInfinity};
  const ModelTotals totals = totals_of(*study_.model);
  Training alone = study_.training; // whose memory has no limit
  alone.offload = {};
  for (const int count : counts) {
    const Problem& costs = problem(count);
    for (std::size_t type = 0; type < study_.platform.types.size(); ++type) {
      Seconds whole;
      for (OperatorId op = 0; op < study_.model->size(); ++op) {
        whole += Seconds{costs.forward[type][op] + costs.backward_input[type][op] + costs.backward_weight[type][op]};
      }
      const DeviceType& on = study_.platform.types[type];
      const ClippingTimes clipping = clipping_times(alone, totals.parameters, on);
      best =
          std::min(best, count * whole + optimizer_time(alone, totals.parameters, on) + clipping.norm + clipping.scale);
    }
  }
  single_ = best;
  return best;
}

Seconds StudyCosts::bound(bool from_empty) {
  std::optional<Seconds>& known = bound_.at(from_empty ? 1 : 0);
  if (!known) {
    known = least_bound(study_, [&](int count) { return lower_bound(problem(count), devices_, from_empty); });
  }
  return *known;
}

Seconds StudyCosts::bound_of_streams(int streams) {
  const auto [slot, is_new] = bound_of_streams_.try_emplace(streams);
  if (is_new) {
    slot->second =
        least_bound(study_, [&](int count) { return lower_bound_of_streams(problem(count), devices_, streams); });
  }
  return slot->second;
}

} // namespace stagecraft
