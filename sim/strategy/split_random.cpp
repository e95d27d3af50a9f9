// A baseline for planners: random cuts and a random order of devices, once or as often as the budget allows.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/improves.hpp"
#include "sim/base/random.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
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

// Random chains that any schedule draws which wants as many stages on each device, in the same places.
class DrawnChains {
public:
  explicit DrawnChains(std::uint64_t seed) : seed_(seed), random_(seed) {}

  std::uint64_t seed() const { return seed_; }

  const Plan& plan(std::size_t number, const PlanRequest& request) {
    while (chains_.size() <= number) {
      chains_.push_back({random_chain(request, random_), std::nullopt});
    }
    return chains_[number].plan;
  }

  /// Of a plan that was drawn.
  const PlanNeeds& needs(std::size_t number, const Problem& problem) {
    auto& [plan, needs] = chains_[number];
    if (!needs) {
      needs = needs_of(problem, plan);
    }
    return *needs;
  }

private:
  struct Chain {
    Plan plan;
    std::optional<PlanNeeds> needs;
  };

  std::uint64_t seed_;
  Random random_;
  std::vector<Chain> chains_;
};
using AllDrawn = std::map<std::pair<int, StagePlacement>, DrawnChains>; // of one seed each

DrawnChains& drawn_chains(AllDrawn& all, const PlanRequest& request) {
  DrawnChains& drawn = all.try_emplace({request.chunks, request.stage_placement}, request.seed).first->second;
  if (drawn.seed() != request.seed) {
    drawn = DrawnChains(request.seed);
  }
  return drawn;
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
  const auto all = kept_for<AllDrawn>(request, [] { return AllDrawn(); });
  DrawnChains& chains = drawn_chains(*all, request);
  Plan best;
  PlanScore least;
  std::string reason;
  const auto is_enough = [&] { return request.any_plan && !best.stages.empty(); };
  for (int drawn = 0; drawn < request.budget && !is_enough(); ++drawn) {
    const Plan& plan = chains.plan(drawn, request);
    if (!best.stages.empty() && surely_slower(request, plan, least.seconds)) {
      continue;
    }
    const PlanScore score = score_plan(request, plan, chains.needs(drawn, request.problem));
    if (score.runs() && (best.stages.empty() || improves(score.seconds, least.seconds))) {
      best = plan;
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
