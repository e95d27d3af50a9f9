// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/split_by_hand.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/base/improves.hpp"
#include "sim/base/random.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/strategy/dynamic_programming/cuts.hpp"
#include "sim/strategy/dynamic_programming/ideal_pipeline.hpp"

namespace stagecraft {
namespace {

constexpr int kTrials = 5; // the model of manual work in the notes on Wang et al. 2020

// What a launch shows: how long an iteration takes and how loaded each stage is. If memory runs out, it shows only
// where.
struct Launch {
  bool runs = false;
  Seconds iteration;
  std::vector<double> load; // per stage
  std::string why_not;
};

Launch launch(const PlanRequest& request, const Plan& plan) {
  const Problem& problem = request.problem;
  const PlanCost cost = cost_plan(problem, plan);
  Launch seen;
  for (const StageCost& stage : cost.stages) {
    seen.load.push_back(stage.replicas.front().busy().value);
  }
  if (const auto shortage =
          plan_shortage(problem, plan, request.chunks, request.in_flight, request.versions, request.stage_placement)) {
    std::fill(seen.load.begin(), seen.load.end(), 0.0);
    seen.load[shortage->stage] = 1;
    seen.why_not = to_text(*shortage, problem.platform);
    return seen;
  }
  if (!request.evaluate) {
    return {true, estimate_iteration(problem, plan, cost), seen.load, ""};
  }
  const Evaluation evaluation = request.evaluate(plan);
  return {evaluation.why_not.empty(), evaluation.iteration, seen.load, evaluation.why_not};
}

// The cuts after one move: the most loaded stage that has an operator to give gives one to its less loaded neighbour.
// Empty if every such move was tried.
std::vector<int> next_move(const std::vector<int>& bounds, const std::vector<double>& load,
                           std::set<std::vector<int>>& tried) {
  const int stages = static_cast<int>(load.size());
  std::vector<int> order(stages);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return load[a] > load[b]; });
  for (const int stage : order) {
    std::vector<int> neighbours;
    for (const int other : {stage - 1, stage + 1}) {
      if (other >= 0 && other < stages) {
        neighbours.push_back(other);
      }
    }
    std::stable_sort(neighbours.begin(), neighbours.end(), [&](int a, int b) { return load[a] < load[b]; });
    for (const int other : neighbours) {
      std::vector<int> moved = bounds;
      moved[std::max(stage, other)] += other < stage ? 1 : -1;
      if (moved[stage + 1] - moved[stage] >= 1 && tried.insert(moved).second) {
        return moved;
      }
    }
  }
  return {};
}

// The devices in the request's order, once per chunk, but no more than there are operators.
std::vector<DeviceId> devices_by_hand(const PlanRequest& request) {
  std::vector<DeviceId> devices = chunked_devices(request);
  devices.resize(std::min<std::size_t>(devices.size(), request.problem.model.size()));
  return devices;
}

// Uniform cuts, each moved by a random amount of less than half a stage, so that no stage is empty.
std::vector<int> guessed_cuts(int layers, int parts, Random& random) {
  std::vector<int> bounds = uniform_cuts(layers, parts);
  const int most = (layers / parts - 1) / 2;
  for (int part = 1; part < parts; ++part) {
    bounds[part] += random.below(2 * most + 1) - most;
  }
  return bounds;
}

} // namespace

HandSplit try_by_hand(const PlanRequest& request, int trials) {
  HandSplit hand;
  if (const std::string reason = too_many_stages(request); !reason.empty() && request.chunks > 1) {
    hand.result = Infeasible{reason};
    return hand;
  }
  const std::vector<DeviceId> devices = devices_by_hand(request);
  std::vector<int> bounds = uniform_cuts(request.problem.model.size(), static_cast<int>(devices.size()));
  std::set<std::vector<int>> tried = {bounds};
  std::vector<int> kept; // the cuts that moves start from
  Launch best;
  while (hand.trials < trials && !bounds.empty()) {
    const Plan plan = make_chain_plan(request, bounds, devices);
    const Launch seen = launch(request, plan);
    ++hand.trials;
    if (seen.runs) {
      hand.tried.push_back(seen.iteration);
    }
    const bool better = seen.runs && (!best.runs || improves(seen.iteration.value, best.iteration.value));
    if (better) {
      hand.result = plan;
    }
    if (!best.runs && !seen.runs) {
      hand.result = Infeasible{seen.why_not + ", in the last of the splits tried by hand"};
    }
    if (better || !best.runs) { // as long as nothing runs, every move is kept
      best = seen;
      kept = bounds;
    }
    bounds = next_move(kept, best.load, tried);
  }
  return hand;
}

PlanResult split_by_hand(const PlanRequest& request) {
  if (!request.drawn) {
    return try_by_hand(request, kTrials).result;
  }
  if (const std::string reason = too_many_stages(request); !reason.empty() && request.chunks > 1) {
    return Infeasible{reason};
  }
  const std::vector<DeviceId> devices = devices_by_hand(request);
  Random random(request.seed);
  return make_chain_plan(request, guessed_cuts(request.problem.model.size(), static_cast<int>(devices.size()), random),
                         devices);
}

} // namespace stagecraft
