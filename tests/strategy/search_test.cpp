// Strategies that search: acceptance of the random walk, its moves, and how a replay changes the result.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/strategy/heuristic/metropolis.hpp"
#include "sim/strategy/heuristic/stage_moves.hpp"
#include "tests/catch.hpp"
#include "tests/plan/random_toys.hpp"

namespace stagecraft {
namespace {

using test::kInfinite;
using test::near;

// Loads 4, 4, 4, 4, 8, 8 on devices of speed 1, 1, 2, one each: the least bottleneck is 8, at cuts 2 and 4 alone.
double bottleneck_of(const StageGroups& state) {
  constexpr std::array<double, 6> kLoads = {4, 4, 4, 4, 8, 8};
  constexpr std::array<double, 3> kSpeeds = {1, 1, 2};
  double worst = 0;
  for (int s = 0; s < state.stages(); ++s) {
    const double load = std::accumulate(&kLoads.at(state.bounds[s]), &kLoads.at(state.bounds[s + 1] - 1) + 1, 0.0);
    worst = std::max(worst, load / kSpeeds.at(state.groups[s].front()));
  }
  return worst;
}

// The walk from each of the ten plans with three stages, by boundaries alone, without a temperature.
TEST_CASE("the walk at temperature 0 reaches the optimum from every plan within 80 proposals", "[plan][mcmc]") {
  for (int first = 1; first < 5; ++first) {
    for (int second = first + 1; second < 6; ++second) {
      const StageGroups start{.bounds = {0, first, second, 6}, .groups = {{0}, {1}, {2}}, .idle = {}};
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        const auto found = metropolis<StageGroups>({start, bottleneck_of(start)}, {.proposals = 80, .theta = 0}, random,
                                                   shift_boundary, bottleneck_of);
        CAPTURE(first, second, seed);
        REQUIRE(found.value == 8);
      }
    }
  }
}

// From value 10 at temperature 1/10 of it, one step to 11 is accepted with probability exp(-1).
TEST_CASE("the walk accepts worse plans as often as its temperature says", "[plan][mcmc]") {
  int accepted = 0;
  constexpr int kWalks = 4000;
  for (std::uint64_t seed = 0; seed < kWalks; ++seed) {
    Random random(seed, 3);
    const auto up = [](const int& at, Random&) { return std::optional<int>(at + 1); };
    // Only from 1 does a second step lead to 2, the best: it is seen where the first step was accepted.
    const std::function<double(const int&)> value = [](const int& at) { return at == 0 ? 10 : at == 1 ? 11 : 5; };
    accepted += metropolis<int>({0, 10}, {.proposals = 2, .theta = 0.1}, random, up, value).value == 5 ? 1 : 0;
  }
  // Either of two proposals may be the first accepted step, but only the first leaves one for the second.
  const double expected = std::exp(-1.0);
  const double deviation = std::sqrt(expected * (1 - expected) / kWalks);
  CHECK(std::abs(accepted / double{kWalks} - expected) < 4 * deviation);
}

TEST_CASE("the walk returns its start where nothing is allowed, and never anything worse", "[plan][mcmc]") {
  Random random(1);
  const auto step = [](const int& at, Random&) { return std::optional<int>(at + 1); };
  const auto never =
      metropolis<int>({0, 3}, {.proposals = 50, .theta = 10}, random, step, [](const int&) { return kInfinite; });
  CHECK(never.state == 0);
  const auto uphill =
      metropolis<int>({0, 3}, {.proposals = 50, .theta = 1e9}, random, step, [](const int& at) { return 3.0 + at; });
  CHECK(uphill.state == 0);
  CHECK(uphill.value == 3);
}

bool is_sound(const StageGroups& state, int operators, int devices) {
  std::set<DeviceId> seen(state.idle.begin(), state.idle.end());
  std::size_t listed = state.idle.size();
  for (const auto& group : state.groups) {
    seen.insert(group.begin(), group.end());
    listed += group.size();
    if (group.empty() || !std::is_sorted(group.begin(), group.end())) {
      return false;
    }
  }
  return state.bounds.size() == state.groups.size() + 1 && state.bounds.front() == 0 &&
         state.bounds.back() == operators && seen.size() == listed && static_cast<int>(listed) == devices &&
         std::adjacent_find(state.bounds.begin(), state.bounds.end(), std::greater_equal<>()) == state.bounds.end() &&
         std::is_sorted(state.idle.begin(), state.idle.end());
}

// Two operators on two devices: the states are, per ordered cut, {0}{1} or {1}{0}; uncut {0}, {1} or {0,1}.
TEST_CASE("moves keep a state sound and lead from any state to any other", "[plan][mcmc]") {
  Random random(5);
  StageGroups state{.bounds = {0, 2}, .groups = {{0}}, .idle = {1}};
  std::vector<StageGroups> seen;
  for (int i = 0; i < 400; ++i) {
    state = random_move(state, random).value_or(state);
    REQUIRE(is_sound(state, 2, 2));
    if (std::find(seen.begin(), seen.end(), state) == seen.end()) {
      seen.push_back(state);
    }
  }
  CHECK(seen.size() == 5);
  state = {.bounds = {0, 3, 6, 9}, .groups = {{0}, {1, 3}, {2}}, .idle = {4}};
  for (int i = 0; i < 5000; ++i) {
    state = random_move(state, random).value_or(state);
    REQUIRE(is_sound(state, 9, 5));
  }
}

// An evaluation that prefers the last device, whatever the estimate says.
// Two devices are alike; the third, of another latency, is the one that the replay prefers. Plans of the walk that
// differ by which of the two does what are replayed once: of one stage 7 choices of devices are 5, of two 12 are 7 for
// each of three cuts, and of three 6 are 3. The three starts are replayed beside them.
TEST_CASE("mcmc uses the replay that it is given, within its budget and once for plans that are alike",
          "[plan][mcmc]") {
  test::Toy toy;
  toy.operators.assign(4, {{3}});
  toy.edges = test::chain_edges(4);
  const double latency = GENERATE(0, 1);
  toy.devices = {{}, {}, {0, test::kInfinite, latency}};
  toy.micro_batches = 4;
  const test::World world(toy);
  PlanRequest request = world.request();
  request.budget = 1000;
  int calls = 0;
  request.evaluate = [&](const Plan& plan) {
    ++calls;
    Evaluation measured;
    measured.iteration = Seconds{plan.stages.size() == 1 && plan.stages[0].devices.size() == 1 &&
                                         plan.stages[0].devices[0] >= (latency > 0 ? 2 : 0)
                                     ? 1.0
                                     : 9};
    return measured;
  };
  const Plan plan = std::get<Plan>(make_plan(test::strategy_row("mcmc"), request));
  // Of three that are alike: 3 choices for one stage, of two 3 for each cut, 3 devices for three.
  const int distinct = latency > 0 ? 5 + 3 * 7 + 3 * 3 : 3 + 3 * 3 + 3;
  CHECK(calls <= distinct + 3);
  CHECK(calls > distinct / 2);
  REQUIRE(plan.stages.size() == 1);
  CHECK(plan.stages[0].devices.size() == 1);
  CHECK(plan.objective->value.value == 1);
}

// Two operators on two devices, and a replay that lets only plans of some number of stages run: one, as data
// parallelism has it; two, as equal stages; or three, as none.
TEST_CASE("where any plan will do, a search ends at the first that runs, and finds one wherever it does otherwise",
          "[plan][mcmc][random]") {
  test::Toy toy;
  toy.operators.assign(2, {{3}});
  toy.edges = test::chain_edges(2);
  toy.devices = {{}, {}};
  const test::World world(toy);
  for (const std::size_t stages : {1, 2, 3}) {
    for (const char* strategy : {"mcmc", "best-of-random"}) {
      PlanRequest request = world.request();
      int calls = 0;
      request.evaluate = [&](const Plan& plan) {
        ++calls;
        return Evaluation{.iteration = Seconds{1}, .why_not = plan.stages.size() == stages ? "" : "other stages"};
      };
      const auto runs = [&] { return std::holds_alternative<Plan>(make_plan(test::strategy_row(strategy), request)); };
      const bool found = runs();
      const int all = std::exchange(calls, 0);
      request.any_plan = true;
      CAPTURE(stages, strategy, all, calls);
      CHECK(runs() == found);
      CHECK(found == (stages == 2 || (stages == 1 && std::string_view(strategy) == "mcmc"))); // random splits use both
      CHECK((found ? calls <= 2 && calls < all : calls == all));
    }
  }
}

TEST_CASE("mcmc is never worse than data parallelism or equal stages, nor best-of-random than random", "[plan][mcmc]") {
  std::mt19937 toys(3);
  int better = 0;
  for (int n = 0; n < 60; ++n) {
    const test::World world(test::random_toy(toys, {.operators = 10, .devices = 4, .memory = n % 2 == 1}));
    const auto estimate = [&](std::string_view strategy) {
      const PlanResult result = test::plan_of(world, strategy);
      const Plan* plan = std::get_if<Plan>(&result);
      return plan == nullptr ? kInfinite
                             : estimate_iteration(world.problem, *plan, cost_plan(world.problem, *plan)).value;
    };
    CAPTURE(n);
    const double mcmc = estimate("mcmc");
    const double start = std::min(estimate("data-parallel"), estimate("uniform"));
    CHECK(mcmc <= start * (1 + 1e-9));
    CHECK(estimate("best-of-random") <= estimate("random") * (1 + 1e-9));
    better += mcmc < start * (1 - 1e-9) ? 1 : 0;
  }
  CHECK(better > 20);
}

// Four operators, three devices: 3 cuts into three parts times 6 orders.
TEST_CASE("random draws every split, one for each seed", "[plan][random]") {
  test::Toy toy;
  toy.operators.assign(4, {{3}});
  toy.edges = test::chain_edges(4);
  toy.devices = {{}, {}, {}};
  const test::World world(toy);
  std::map<std::pair<std::vector<int>, std::vector<DeviceId>>, int> drawn;
  PlanRequest request = world.request();
  for (request.seed = 0; request.seed < 1800; ++request.seed) {
    const Plan plan = std::get<Plan>(make_plan(test::strategy_row("random"), request));
    ++drawn[{test::cuts_of(plan), devices_of(plan)}];
  }
  CHECK(drawn.size() == 18);
  for (const auto& [plan, times] : drawn) { // 100 on average, four standard deviations
    CHECK(std::abs(times - 100) < 4 * 10);
  }
}

TEST_CASE("best-of-random is the best of its budget", "[plan][random]") {
  test::Toy toy;
  toy.operators.assign(4, {{3}});
  toy.edges = test::chain_edges(4);
  toy.devices = {{}, {}, {}};
  const test::World world(toy);
  PlanRequest request = world.request();
  request.budget = 7;
  std::vector<double> seen;
  request.evaluate = [&](const Plan& plan) { // no two alike
    seen.push_back(10.0 + static_cast<double>(plan.stages[0].operators.size()) + plan.stages[0].devices.front() / 10.0 +
                   plan.stages[1].devices.front() / 100.0);
    return Evaluation{.iteration = Seconds{seen.back()}, .devices = {}, .busy = {}, .tail = {}, .why_not = ""};
  };
  const Plan plan = std::get<Plan>(make_plan(test::strategy_row("best-of-random"), request));
  CHECK(seen.size() == 7);
  CHECK(plan.objective->value.value == *std::min_element(seen.begin(), seen.end()));
}

} // namespace
} // namespace stagecraft
