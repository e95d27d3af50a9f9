// A baseline for planners: random cuts and a random order of devices, once or as often as the budget allows.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/improves.hpp"
#include "sim/base/random.hpp"
#include "sim/strategy/dynamic_programming/cuts.hpp"
#include "sim/strategy/heuristic/plan_score.hpp"

namespace stagecraft {
namespace {

// Every set of cuts is equally likely: each place between two operators is taken with probability cuts left / places
// left.
std::vector<int> random_cuts(int operators, int parts, Random& random) {
  std::vector<int> bounds = {0};
  for (int place = 1; place < operators; ++place) {
    const int cuts_left = parts - static_cast<int>(bounds.size());
    if (random.below(operators - place) < cuts_left) {
      bounds.push_back(place);
    }
  }
  bounds.push_back(operators);
  return bounds;
}

std::vector<DeviceId> random_order(std::vector<DeviceId> devices, Random& random) {
  for (int left = static_cast<int>(devices.size()); left > 1; --left) {
    std::swap(devices[left - 1], devices[random.below(left)]);
  }
  return devices;
}

// Uses as many devices as can have an operator in each of their chunks; at least one.
Plan random_chain(const PlanRequest& request, Random& random) {
  const int operators = request.problem.model.size();
  std::vector<DeviceId> order = random_order(request.devices, random);
  order.resize(std::min(order.size(), static_cast<std::size_t>(operators / request.chunks)));
  const std::vector<DeviceId> devices = place_stages(order, request.chunks, request.stage_placement);
  return make_chain_plan(request, random_cuts(operators, static_cast<int>(devices.size()), random), devices);
}

// Whether a replay of the plan would be in vain.
bool surely_slower(const PlanRequest& request, const Plan& plan, double seconds) {
  constexpr double kRounding = 1e-6; // far more than sums differ by, and than what ties decide
  return request.at_least && request.at_least(plan) * (1 - kRounding) > seconds;
}

} // namespace

PlanResult split_random(const PlanRequest& request) {
  if (request.problem.model.size() < request.chunks) {
    return Infeasible{too_many_stages(request)};
  }
  Random random(request.seed);
  return random_chain(request, random);
}

PlanResult split_best_of_random(const PlanRequest& request) {
  if (request.problem.model.size() < request.chunks) {
    return Infeasible{too_many_stages(request)};
  }
  Random random(request.seed);
  Plan best;
  PlanScore least;
  std::string reason;
  const auto is_enough = [&] { return request.any_plan && !best.stages.empty(); };
  for (int drawn = 0; drawn < request.budget && !is_enough(); ++drawn) {
    Plan plan = random_chain(request, random);
    if (!best.stages.empty() && surely_slower(request, plan, least.seconds)) {
      continue;
    }
    const PlanScore score = score_plan(request, plan);
    if (score.runs() && (best.stages.empty() || improves(score.seconds, least.seconds))) {
      best = std::move(plan);
      least = score;
    }
    reason = reason.empty() ? score.why_not : reason;
  }
  if (best.stages.empty()) {
    return Infeasible{"none of " + std::to_string(request.budget) + " random splits runs; the first: " + reason};
  }
  best.objective = Objective{"iteration", Seconds{least.seconds}};
  return best;
}

} // namespace stagecraft
