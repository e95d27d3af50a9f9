// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/cost/collective.hpp"

namespace stagecraft {
namespace {

// Time over the slowest pair of two stages' devices.
Seconds slowest_transfer(const Problem& problem, const Stage& from, const Stage& to, Bytes bytes) {
  Seconds worst;
  for (const DeviceId a : from.devices) {
    for (const DeviceId b : to.devices) {
      if (a != b) {
        worst = std::max(worst, problem.path(a, b).time(bytes));
      }
    }
  }
  return worst;
}

// Per device, the sum over its stages.
std::map<DeviceId, Seconds> busy_by_device(const PlanCost& cost) {
  std::map<DeviceId, Seconds> busy;
  for (const StageCost& stage : cost.stages) {
    for (const ReplicaCost& replica : stage.replicas) {
      busy[replica.device] += replica.busy();
    }
  }
  return busy;
}

Seconds all_reduce(const Problem& problem, const Stage& stage, const StageCost& cost) {
  const auto ranks = stage.devices.size();
  PathCost slowest;
  for (std::size_t i = 0; i < ranks && ranks > 1; ++i) {
    const PathCost path = problem.path(stage.devices[i], stage.devices[(i + 1) % ranks]);
    slowest.latency = std::max(slowest.latency, path.latency);
    slowest.seconds_per_byte = std::max(slowest.seconds_per_byte, path.seconds_per_byte);
  }
  return ring_all_reduce_time(static_cast<int>(ranks), cost.gradients, slowest);
}

} // namespace

Seconds bottleneck(const Problem& problem, const Plan& plan, const PlanCost& cost) {
  Seconds worst;
  for (const auto& [device, busy] : busy_by_device(cost)) {
    worst = std::max(worst, busy);
  }
  for (std::size_t n = 0; n + 1 < plan.stages.size(); ++n) {
    worst = std::max(worst, 2 * slowest_transfer(problem, plan.stages[n], plan.stages[n + 1], cost.cut[n]));
  }
  return worst;
}

Seconds estimate_iteration(const Problem& problem, const Plan& plan, const PlanCost& cost) {
  Seconds largest;
  for (const auto& [device, busy] : busy_by_device(cost)) {
    largest = std::max(largest, busy);
  }
  Seconds total;
  Seconds reduce;
  Seconds step;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    Seconds slowest;
    for (const ReplicaCost& replica : cost.stages[s].replicas) {
      slowest = std::max(slowest, replica.busy());
      step = std::max(step, replica.optimizer);
    }
    total += slowest;
    if (s + 1 < plan.stages.size()) {
      total += 2 * slowest_transfer(problem, plan.stages[s], plan.stages[s + 1], cost.cut[s]);
    }
    reduce = std::max(reduce, all_reduce(problem, plan.stages[s], cost.stages[s]));
  }
  return (problem.micro_batches - 1) * largest + total + reduce + step;
}

std::optional<MemoryShortage> memory_shortage(const Problem& problem, const Plan& plan, const PlanCost& cost,
                                              const std::function<double(int, int)>& in_flight, int versions) {
  struct Need {
    Bytes sum, largest;
    int stage = 0;
  };
  std::map<DeviceId, Need> needs;
  const int stages = static_cast<int>(plan.stages.size());
  for (int s = 0; s < stages; ++s) {
    for (const ReplicaCost& replica : cost.stages[s].replicas) {
      const Bytes bytes = replica.memory.total(in_flight(s, stages), versions);
      Need& need = needs[replica.device];
      need.sum += bytes;
      if (bytes > need.largest) {
        need.largest = bytes;
        need.stage = s;
      }
    }
  }
  std::optional<MemoryShortage> worst;
  for (const auto& [device, need] : needs) {
    const Bytes have = problem.platform.type_of(device).memory;
    if (need.sum > have && (!worst || need.sum - have > worst->need - worst->have)) {
      worst = MemoryShortage{device, need.stage, need.sum, have};
    }
  }
  return worst;
}

std::string to_text(const MemoryShortage& shortage, const Platform& platform) {
  return "stage " + std::to_string(shortage.stage) + " on '" + platform.devices[shortage.device].name + "' needs " +
         to_text(shortage.need) + ", " + to_text(shortage.need - shortage.have) + " more than its " +
         to_text(shortage.have);
}

namespace {

// The least time in which one device can push the whole batch through an operator, whatever the micro-batch size: time
// per sample falls with the size for rooflines and scaled profiles, so the largest decides; between two measured sizes
// it goes one way, so those are tried too.
double batch_seconds(const Problem& problem, OperatorId op, int type) {
  const double batch = problem.training.global_batch;
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> sizes = {batch};
  for (const Profile& profile : problem.model.profiles) {
    if (profile.samples > 0 && profile.samples < batch) {
      sizes.push_back(profile.samples);
    }
  }
  for (const double samples : sizes) {
    const auto time = problem.cost.time(op, problem.platform.types[type], samples, problem.training.precision);
    if (!time) {
      return least;
    }
    least = std::min(least, (time->forward + time->backward_input + time->backward_weight).value * (batch / samples));
  }
  return least;
}

} // namespace

Seconds lower_bound(const Problem& problem, const std::vector<DeviceId>& devices) {
  const int types = static_cast<int>(problem.platform.types.size());
  std::vector<std::vector<double>> seconds(types);
  std::vector<double> speed(types, 0.0);
  std::vector<int> count(types, 0);
  for (const DeviceId device : devices) {
    ++count[problem.type_index(device)];
  }
  for (int type = 0; type < types; ++type) {
    double finite = 0;
    for (OperatorId op = 0; op < problem.model.size() && count[type] > 0; ++op) {
      seconds[type].push_back(batch_seconds(problem, op, type));
      finite += std::isinf(seconds[type].back()) ? 0 : seconds[type].back();
    }
    speed[type] = finite > 0 ? 1 / finite : 0;
  }
  double total_speed = 0;
  for (int type = 0; type < types; ++type) {
    total_speed += count[type] * speed[type];
  }
  double bound = 0;
  for (OperatorId op = 0; op < problem.model.size() && total_speed > 0; ++op) {
    double least = std::numeric_limits<double>::infinity();
    for (int type = 0; type < types; ++type) {
      if (count[type] > 0 && !std::isinf(seconds[type][op])) {
        least = std::min(least, speed[type] / total_speed * seconds[type][op]);
      }
    }
    bound += std::isinf(least) ? 0 : least;
  }
  return Seconds{bound};
}

} // namespace stagecraft
