// Wang et al. 2020: loads come from the static network and shares from the devices' nominal power (a variant takes
// their calibrated power); then memory is repaired. It ignores links and, with nominal power, the efficiency of
// kernels: its known weakness.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "sim/base/improves.hpp"
#include "sim/strategy/dynamic_programming/cuts.hpp"
#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"
#include "sim/strategy/first_plans.hpp"

namespace stagecraft {
namespace {

// Cut d is where the cumulative load comes closest to the cumulative power: argmin_k |W[k] - c_d W[L]|; ties go to the
// smaller k.
std::vector<int> proportional_cuts(std::span<const double> loads, std::span<const double> power) {
  const int layers = static_cast<int>(loads.size());
  const int devices = static_cast<int>(power.size());
  double total_load = 0;
  double total_power = 0;
  for (const double load : loads) {
    total_load += load;
  }
  for (const double one : power) {
    total_power += one;
  }
  std::vector<double> reached = {0}; // W[k]
  for (const double load : loads) {
    reached.push_back(reached.back() + load);
  }
  std::vector<int> bounds = {0};
  double powers = 0;
  for (int d = 1; d < devices; ++d) {
    powers += power[d - 1];
    const double target = powers / total_power * total_load;
    int best = bounds.back() + 1;
    for (int k = best + 1; k <= layers - (devices - d); ++k) {
      best = std::abs(reached[k] - target) < std::abs(reached[best] - target) ? k : best;
    }
    bounds.push_back(best);
  }
  bounds.push_back(layers);
  return bounds;
}

} // namespace

CapabilityCuts capability_cuts(std::span<const double> loads, std::span<const double> power,
                               const std::function<bool(int, int, int)>& fits) {
  const int devices = static_cast<int>(power.size());
  std::vector<int> bounds = proportional_cuts(loads, power);
  for (int d = 0; d + 1 < devices; ++d) { // the last layer moves to the next device
    while (bounds[d + 1] - bounds[d] > 1 && !fits(d, bounds[d], bounds[d + 1])) {
      --bounds[d + 1];
    }
  }
  for (int d = devices - 1; d > 0; --d) { // and the first one back
    while (bounds[d + 1] - bounds[d] > 1 && !fits(d, bounds[d], bounds[d + 1])) {
      ++bounds[d];
    }
  }
  for (int d = 0; d < devices; ++d) {
    if (!fits(d, bounds[d], bounds[d + 1])) {
      return {bounds, d};
    }
  }
  return {bounds, -1};
}

std::vector<int> refine_cuts(std::vector<int> bounds, std::span<const double> loads, std::span<const double> power,
                             const std::function<bool(int, int, int)>& fits) {
  const int devices = static_cast<int>(power.size());
  const auto largest = [&](const std::vector<int>& at) {
    double worst = 0;
    for (int d = 0; d < devices; ++d) {
      double load = 0;
      for (int k = at[d]; k < at[d + 1]; ++k) {
        load += loads[k];
      }
      worst = std::max(worst, load / power[d]);
    }
    return worst;
  };
  double now = largest(bounds);
  for (;;) {
    std::vector<int> best = bounds;
    double best_value = now;
    for (int d = 1; d < devices; ++d) {
      for (const int step : {-1, 1}) {
        std::vector<int> moved = bounds;
        moved[d] += step;
        if (moved[d] <= moved[d - 1] || moved[d] >= moved[d + 1] || !fits(d - 1, moved[d - 1], moved[d]) ||
            !fits(d, moved[d], moved[d + 1])) {
          continue;
        }
        if (const double value = largest(moved); value < best_value - kTie * std::max(1.0, best_value)) {
          best_value = value;
          best = moved;
        }
      }
    }
    if (best == bounds) {
      return bounds;
    }
    bounds = best;
    now = best_value;
  }
}

namespace {

// Static load per operator: FLOPs of training, or measured time if the model has only that.
std::vector<double> static_loads(const Problem& problem) {
  std::vector<double> loads;
  double sum = 0;
  for (const Operator& op : problem.model.operators) {
    loads.push_back((op.forward.flops + op.backward_input.flops + op.backward_weight.flops).value);
    sum += loads.back();
  }
  if (sum == 0 && !problem.model.profiles.empty()) {
    const Profile& profile = problem.model.profiles.front();
    for (OperatorId op = 0; op < problem.model.size(); ++op) {
      loads[op] = (profile.times[op].forward + profile.times[op].backward).value;
    }
  }
  return loads;
}

enum class Power { nominal, calibrated };

// Power of each device: the vendor's peak, or how fast the cost model says that it runs the whole model. Devices of one
// type are equal even without a peak.
std::variant<std::vector<double>, Infeasible> power_of(const Problem& problem, const std::vector<DeviceId>& devices,
                                                       Power kind) {
  std::vector<double> power;
  const bool equal = std::all_of(devices.begin(), devices.end(), [&](DeviceId device) {
    return problem.type_index(device) == problem.type_index(devices.front());
  });
  for (const DeviceId device : devices) {
    const DeviceType& type = problem.platform.type_of(device);
    if (equal) {
      power.push_back(1);
    } else if (kind == Power::calibrated) {
      const double seconds = problem.prefix.seconds[problem.type_index(device)].back();
      if (std::isinf(seconds)) {
        return Infeasible{"device type '" + type.name + "' lacks a kernel of the model, so it has no calibrated power"};
      }
      power.push_back(1 / seconds);
    } else if (const auto peak = type.peak[static_cast<std::size_t>(problem.training.precision)]; peak) {
      power.push_back(peak->value);
    } else {
      return Infeasible{"device type '" + type.name + "' has no nominal " +
                        std::string(row_of(problem.training.precision).name) + " peak to share the load by"};
    }
  }
  return power;
}

// Problem::border() of operators that follow one another, without a look at those far from their ends. Operators come
// after those that they read.
class ChainBorders {
public:
  explicit ChainBorders(const Problem& problem) : problem_(problem), open_(problem.model.size() + 1) {
    for (OperatorId op = 0; op < problem.model.size(); ++op) {
      const auto& users = problem.model.successors[op];
      const OperatorId last = users.empty() ? op : *std::max_element(users.begin(), users.end());
      for (OperatorId at = op + 1; at <= last; ++at) {
        open_[at].push_back(op);
      }
      if (problem.model.predecessors[op].empty()) {
        sources_.push_back(op);
      }
    }
  }

  Problem::Border of(OperatorId first, OperatorId last) const {
    Problem::Border sum;
    const auto is_inside = [=](OperatorId op) { return op >= first && op < last; };
    for (const OperatorId maker : open_[first]) {
      const auto& users = problem_.model.successors[maker];
      sum.incoming += std::any_of(users.begin(), users.end(), is_inside) ? problem_.output_bytes(maker) : Bytes{0};
    }
    for (const OperatorId source : sources_) {
      sum.incoming += is_inside(source) ? problem_.input_bytes() : Bytes{0};
    }
    for (const OperatorId maker : open_[last]) {
      sum.outgoing += is_inside(maker) ? problem_.output_bytes(maker) : Bytes{0};
    }
    return sum;
  }

private:
  const Problem& problem_;
  std::vector<std::vector<OperatorId>> open_; // [operator]: those before it that it or a later one reads
  std::vector<OperatorId> sources_;
};

PlanResult split_by_capability(const PlanRequest& request, Power kind, bool refined) {
  const Problem& problem = request.problem;
  if (const std::string reason = too_many_stages(request); !reason.empty()) {
    return Infeasible{reason};
  }
  const std::vector<DeviceId> devices = chunked_devices(request);
  const int stages = static_cast<int>(devices.size());
  auto found = power_of(problem, devices, kind);
  if (const Infeasible* reason = std::get_if<Infeasible>(&found)) {
    return *reason;
  }
  const std::vector<double>& power = std::get<std::vector<double>>(found);
  bool memory_bound = false;
  const ChainBorders borders(problem);
  const auto fits = [&](int part, int first, int last) {
    const Prefix& prefix = problem.prefix;
    const Problem::Border border = borders.of(first, last);
    const StageMemory memory =
        memory_of_stage(problem,
                        {prefix.parameters[last] - prefix.parameters[first],
                         Bytes{prefix.resident_bytes[last] - prefix.resident_bytes[first]},
                         prefix.stash[last] - prefix.stash[first], border.incoming, border.outgoing},
                        problem.training.recompute.what);
    const bool enough = memory.total(request.in_flight(part, stages), request.versions) <=
                        problem.platform.type_of(devices[part]).memory / request.chunks;
    memory_bound |= !enough;
    return enough;
  };
  const std::vector<double> loads = static_loads(problem);
  std::vector<int> bounds = capability_cuts(loads, power, fits).bounds;
  if (refined) {
    bounds = refine_cuts(std::move(bounds), loads, power, fits);
  }
  Plan plan = make_chain_plan(request, bounds, devices);
  plan.memory_bound = memory_bound;
  return plan;
}

} // namespace

PlanResult split_capability(const PlanRequest& request) { return split_by_capability(request, Power::nominal, false); }

PlanResult split_capability_refined(const PlanRequest& request) {
  return split_by_capability(request, Power::nominal, true);
}

PlanResult split_capability_calibrated(const PlanRequest& request) {
  return split_by_capability(request, Power::calibrated, false);
}

} // namespace stagecraft
