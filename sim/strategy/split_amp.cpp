// AMP (Li et al. 2022): for each choice of tensor, data and pipeline degrees, ranks are placed pipeline first, and the
// layers are cut for the least latency. The configuration with the least estimate wins. Times are those of each device,
// not an average.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "sim/base/improves.hpp"
#include "sim/collective/collective.hpp"
#include "sim/cost/alike_times.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/plan_request.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/plan/estimate/shares.hpp"
#include "sim/plan/stage_cost/passes/tensor_parallel.hpp"
#include "sim/strategy/dynamic_programming/kept_answers.hpp"
#include "sim/strategy/dynamic_programming/latency_cuts.hpp"

namespace stagecraft {
namespace {

struct Degrees {
  int tensor = 1, data = 1, pipeline = 1;
  auto operator<=>(const Degrees&) const = default;
};

// Stage s of replica i gets the group of `tensor` devices number i * pipeline + s: neighbours in the list are
// neighbours in the pipeline. Empty if a group would span two nodes.
std::vector<std::vector<DeviceId>> place_ranks(const PlanRequest& request, const Degrees& degrees) {
  std::vector<std::vector<DeviceId>> stages(degrees.pipeline);
  for (int replica = 0; replica < degrees.data; ++replica) {
    for (int stage = 0; stage < degrees.pipeline; ++stage) {
      const auto first = static_cast<std::size_t>(replica * degrees.pipeline + stage) * degrees.tensor;
      for (int rank = 0; rank < degrees.tensor; ++rank) {
        const DeviceId device = request.devices[first + rank];
        if (request.problem.platform.devices[device].node !=
            request.problem.platform.devices[request.devices[first]].node) {
          return {};
        }
        stages[stage].push_back(device);
      }
    }
  }
  return stages;
}

// Prefix sums of operators' times for one configuration, once per device type or group of devices.
class LayerTimes {
public:
  LayerTimes(const Problem& problem, const Degrees& degrees) : problem_(problem), degrees_(degrees) {
    // Ignores that a cut may separate a pair: cuts are few.
    auto split = split_tensors(problem, all_operators(problem.model), {degrees.tensor});
    if (std::holds_alternative<TensorSplit>(split)) {
      split_ = std::move(std::get<TensorSplit>(split));
    }
  }

  /// Whether the model can be divided by the tensor degree.
  bool divides() const { return !split_.operators.empty(); }

  // The distinct prefix sums of a stage's groups.
  std::vector<const std::vector<double>*> of(const std::vector<DeviceId>& devices) {
    std::vector<const std::vector<double>*> sums;
    for (std::size_t first = 0; first < devices.size(); first += degrees_.tensor) {
      const std::vector<double>* one =
          &of_group({devices.begin() + static_cast<std::ptrdiff_t>(first),
                     devices.begin() + static_cast<std::ptrdiff_t>(first) + degrees_.tensor});
      if (std::find(sums.begin(), sums.end(), one) == sums.end()) {
        sums.push_back(one);
      }
    }
    return sums;
  }

private:
  using Key = std::pair<std::vector<int>, std::vector<double>>; // types, figures of the group

  const std::vector<double>& of_group(const std::vector<DeviceId>& devices) {
    const Group group = group_of_devices(problem_, devices);
    const std::vector<int> types = problem_.types_of(devices);
    std::vector<double>& sums = sums_[{types, figures_of(group)}];
    if (sums.empty()) {
      std::vector<AlikeTimes> known;
      for (const int type : types) {
        known.emplace_back(problem_.cost, problem_.platform.types[type], problem_.samples * (1.0 / degrees_.data),
                           problem_.training.precision);
      }
      sums.push_back(0);
      for (OperatorId op = 0; op < problem_.model.size(); ++op) {
        double slowest = 0;
        for (AlikeTimes& of_type : known) {
          slowest = std::max(slowest, seconds(op, of_type, group));
        }
        sums.push_back(sums.back() + slowest);
      }
    }
    return sums;
  }

  double seconds(OperatorId op, AlikeTimes& times, const AxisGroups& groups) const {
    const double share = 1.0 / degrees_.data;
    const std::optional<OperatorTime>& time = times.of_shard(op, split_.operators[op].shard);
    if (!time) {
      return kInfinity;
    }
    if (degrees_.tensor * degrees_.data > 1 && !problem_.model.operators[op].divisible) {
      return kInfinity;
    }
    const RankShare& part = split_.operators[op];
    const Seconds forward = forward_seconds(*time, part, groups, share);
    const int passes = problem_.counts_again(op) ? 2 : 1;
    return (forward * passes + backward_seconds(*time, part, groups, share)).value;
  }

  const Problem& problem_;
  Degrees degrees_;
  TensorSplit split_;
  std::map<Key, std::vector<double>> sums_;
};

// The distinct paths between two stages: tensors go from rank to rank, replica by replica.
std::vector<PathCost> paths_between(const Problem& problem, const std::vector<DeviceId>& from,
                                    const std::vector<DeviceId>& to) {
  std::vector<PathCost> paths;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const PathCost path = problem.path(from[i], to[i]);
    if (std::none_of(paths.begin(), paths.end(), [&](const PathCost& known) {
          return known.latency == path.latency && known.seconds_per_byte == path.seconds_per_byte;
        })) {
      paths.push_back(path);
    }
  }
  return paths;
}

// The least memory of a stage's devices.
Bytes least_memory(const Problem& problem, const std::vector<DeviceId>& devices) {
  Bytes least{kInfinity};
  for (const DeviceId device : devices) {
    least = std::min(least, problem.platform.type_of(device).memory);
  }
  return least;
}

// A bound on the memory of layers [first, last) on a device of a stage, linear in what they hold. What crosses a
// stage's borders and which activations a group divides is known only for a whole plan, so the bound is a lower one, or
// an upper one if `careful`.
class MemoryBound {
public:
  MemoryBound(const PlanRequest& request, const Degrees& degrees, int part, bool careful)
      : prefix_(request.problem.prefix), input_(request.problem.input_bytes().value) {
    const Problem& problem = request.problem;
    const double in_flight = request.in_flight(part, degrees.pipeline);
    const auto bytes_of = [&](const StageAmounts& amounts) {
      return memory_of_stage(problem, amounts, problem.training.recompute.what)
          .total(in_flight, request.versions)
          .value;
    };
    const double share = 1.0 / degrees.data;
    const Bytes border{careful ? share : 0};
    parameter_ = bytes_of({.parameters = 1.0 / degrees.tensor});
    resident_ = bytes_of({.resident = Bytes{1.0 / degrees.tensor}});
    const Bytes stash{share / (careful ? 1 : degrees.tensor)};
    held_ = bytes_of({.stash = {stash, Bytes{0}}});
    again_ = bytes_of({.stash = {Bytes{0}, stash}});
    incoming_ = bytes_of({.incoming = border});
    outgoing_ = bytes_of({.outgoing = border});
  }

  double bytes(int first, int last, bool outgoing = true) const {
    const auto between = [&](const std::vector<double>& sums) { return sums[last] - sums[first]; };
    const Activations stash = prefix_.stash[last] - prefix_.stash[first];
    return between(prefix_.parameters) * parameter_ + between(prefix_.resident_bytes) * resident_ +
           stash.held.value * held_ + stash.again.value * again_ +
           (first == 0 ? input_ : prefix_.cut_bytes[first]) * incoming_ +
           (outgoing ? prefix_.cut_bytes[last] * outgoing_ : 0);
  }

private:
  const Prefix& prefix_;
  double input_;
  double parameter_ = 0, resident_ = 0, held_ = 0, again_ = 0, incoming_ = 0, outgoing_ = 0; // bytes for one of each
};

// What schedules have in common: one choice of degrees, its ranks placed. No stages if it cannot be.
struct PlacedDegrees {
  std::vector<std::vector<DeviceId>> stages;
  std::unique_ptr<LayerTimes> times;                         // holds the sums
  std::vector<std::vector<const std::vector<double>*>> sums; // [stage]
  std::vector<Bytes> memory;                                 // [stage]
  std::vector<std::vector<PathCost>> paths;                  // [stage]: from the one before
  KeptAnswers<std::optional<LatencyCuts>> cuts;              // not careful ones

  PlacedDegrees(const PlanRequest& request, const Degrees& degrees) {
    const Problem& problem = request.problem;
    std::vector<std::vector<DeviceId>> ranks = place_ranks(request, degrees);
    if (ranks.empty()) {
      return;
    }
    times = std::make_unique<LayerTimes>(problem, degrees);
    if (!times->divides()) {
      return;
    }
    stages = std::move(ranks);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      sums.push_back(times->of(stages[stage]));
      memory.push_back(least_memory(problem, stages[stage]));
      paths.push_back(stage > 0 ? paths_between(problem, stages[stage - 1], stages[stage]) : std::vector<PathCost>{});
    }
  }
};
using AllPlaced = std::map<Degrees, PlacedDegrees>;

Plan plan_of(const Problem& problem, const Degrees& degrees, const PlacedDegrees& placed, const LatencyCuts& cuts) {
  Plan plan;
  for (int part = 0; part < degrees.pipeline; ++part) {
    Stage stage;
    stage.operators = operators_between(cuts.bounds[part], cuts.bounds[part + 1]);
    stage.devices = placed.stages[part];
    stage.tensor_parallel = degrees.tensor;
    recompute_as_trained(problem, stage);
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

// The cuts with the least latency of all that fit. Careful ones are not kept: a longer part may fit where a shorter one
// does not, so that not all that fit are looked at.
std::optional<LatencyCuts> find_cuts(const PlanRequest& request, PlacedDegrees& placed, const LatencyChain& chain) {
  if (!chain.shorter_fit) {
    return latency_cuts(chain);
  }
  const auto stays = [&](const std::optional<LatencyCuts>& cuts) {
    for (int part = 0; cuts && part < chain.parts; ++part) {
      if (chain.fits(part, cuts->bounds[part], cuts->bounds[part + 1]) != Fit::yes) {
        return false;
      }
    }
    return true;
  };
  return placed.cuts.find_or_keep(held_by_schedule(request, chain.parts), stays, [&] { return latency_cuts(chain); });
}

// The plan of one configuration, or nothing.
std::optional<Plan> cut(const PlanRequest& request, const Degrees& degrees, PlacedDegrees& placed, bool careful) {
  const Problem& problem = request.problem;
  const auto& sums = placed.sums;
  const auto& memory = placed.memory;
  const auto& paths = placed.paths;
  if (placed.stages.empty()) {
    return std::nullopt;
  }
  std::vector<MemoryBound> needs;
  for (int part = 0; part < degrees.pipeline; ++part) {
    needs.emplace_back(request, degrees, part, careful);
  }
  LatencyChain chain{.layers = problem.model.size(), .parts = degrees.pipeline};
  chain.repeats = problem.micro_batches - 1;
  chain.seconds = [&](int part, int first, int last) {
    double slowest = 0;
    for (const std::vector<double>* one : sums[part]) {
      const double seconds = (*one)[last] - (*one)[first];
      slowest = std::max(slowest, std::isfinite(seconds) ? seconds : kInfinity);
    }
    return slowest;
  };
  for (std::size_t part = 0; part < sums.size(); ++part) {
    const auto like = std::find(sums.begin(), sums.end(), sums[part]) - sums.begin();
    chain.kind.push_back(static_cast<int>(like));
  }
  chain.fits = [&](int part, int first, int last) {
    const double most = memory[part].value;
    return needs[part].bytes(first, last) <= most          ? Fit::yes
           : needs[part].bytes(first, last, false) <= most ? Fit::no
                                                           : Fit::never;
  };
  chain.shorter_fit = !careful; // what goes out may shrink as a part grows
  chain.transfer = [&](int part, int at) {
    Seconds worst;
    for (const PathCost& path : paths[part]) {
      worst = std::max(worst, path.time(Bytes{problem.prefix.cut_bytes[at] / degrees.data}));
    }
    return 2 * worst.value; // the activation and its gradient
  };
  const auto found = find_cuts(request, placed, chain);
  return found ? std::optional(plan_of(problem, degrees, placed, *found)) : std::nullopt;
}

class AmpSearch {
public:
  explicit AmpSearch(const PlanRequest& request)
      : request_(request), placed_(kept_for<AllPlaced>(request, [] { return AllPlaced(); })) {}

  // Tries all choices of the three degrees that use exactly `devices` devices.
  void try_devices(int devices) {
    const int most_tensor = request_.groups ? 1 : 8;
    const double layers = request_.problem.model.size();
    for (int tensor = 1; tensor <= std::min(devices, most_tensor); tensor *= 2) {
      for (int data = 1; data * tensor <= devices; ++data) {
        const int pipeline = devices / (tensor * data);
        if (pipeline * tensor * data != devices || pipeline > layers || !divides_samples(request_.problem, data)) {
          continue;
        }
        if (pipeline * layers * layers > kMostCells) {
          fewest_left_out = fewest_left_out > 0 ? std::min(fewest_left_out, pipeline) : pipeline;
        } else {
          consider({tensor, data, pipeline});
        }
      }
    }
  }

  std::optional<Plan> best;
  int fewest_left_out = 0; ///< pipelines of this many stages and more were too large to plan; 0: none

private:
  static constexpr double kMostCells = 4e7; // parts x layers^2 of the dynamic program's table

  void consider(const Degrees& degrees) {
    PlacedDegrees& placed = placed_->try_emplace(degrees, request_, degrees).first->second;
    for (const bool careful : {false, true}) {
      std::optional<Plan> plan = cut(request_, degrees, placed, careful);
      if (!plan) {
        return;
      }
      const Problem& problem = request_.problem;
      if (plan_shortage(problem, *plan, 1, request_.in_flight, request_.versions)) {
        continue;
      }
      const double latency = estimate_iteration(problem, *plan, cost_plan(problem, *plan)).value;
      if (improves(latency, least_)) {
        least_ = latency;
        plan->objective = Objective{"latency", Seconds{latency}};
        plan->memory_bound = true;
        best = std::move(plan);
      }
      return;
    }
  }

  const PlanRequest& request_;
  std::shared_ptr<AllPlaced> placed_; // those tried so far
  double least_ = kInfinity;
};

std::string why_no_degrees_fit(const PlanRequest& request) {
  const AbleDevices able = able_devices(request);
  if (!able.lacks.empty()) {
    return able.lacks;
  }
  return "no tensor, data and pipeline degrees over the first devices fit into memory; the largest has " +
         to_text(most_memory(request.problem.platform, able.devices));
}

} // namespace

PlanResult split_amp(const PlanRequest& request) {
  AmpSearch search{request};
  int used = static_cast<int>(request.devices.size());
  for (; used > 0 && !search.best; --used) {
    search.try_devices(used);
  }
  std::string left_out;
  if (search.fewest_left_out > 0) {
    left_out = "pipelines of " + std::to_string(search.fewest_left_out) +
               " and more stages were left out: too many cuts of " + std::to_string(request.problem.model.size()) +
               " layers";
  }
  if (!search.best) {
    return Infeasible{why_no_degrees_fit(request) + (left_out.empty() ? "" : "; " + left_out)};
  }
  std::string& note = search.best->note;
  if (++used < static_cast<int>(request.devices.size())) {
    note = "no degrees use more than " + std::to_string(used) + " devices";
  }
  note += (note.empty() || left_out.empty() ? "" : "; ") + left_out;
  return std::move(*search.best);
}

} // namespace stagecraft
