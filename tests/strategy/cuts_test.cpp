// Published splits of a chain as functions of numbers: their worked examples, and laws over random chains.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "sim/strategy/dynamic_programming/cuts.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"

namespace stagecraft {
namespace {

using Ints = std::vector<int>;
using Doubles = std::vector<double>;

TEST_CASE("uniform: floor(n/k) layers each, the first n mod k get one more", "[plan][uniform]") {
  CHECK(uniform_cuts(10, 4) == Ints{0, 3, 6, 8, 10});
  CHECK(uniform_cuts(3, 4) == Ints{0, 1, 2, 3, 3});
  for (int n = 1; n <= 20; ++n) {
    for (int k = 1; k <= 20; ++k) {
      const Ints cuts = uniform_cuts(n, k);
      REQUIRE(cuts.size() == static_cast<std::size_t>(k) + 1);
      CHECK(cuts.back() == n);
      for (int part = 0; part < k; ++part) {
        CHECK(cuts[part + 1] - cuts[part] == n / k + (part < n % k ? 1 : 0));
      }
    }
  }
}

TEST_CASE("parameters: the least difference of parts, the last cut wins ties", "[plan][parameters]") {
  CHECK(balanced_cuts(Doubles{1, 2, 3, 4, 5, 6}, 2) == Ints{0, 4, 6});
  CHECK(balanced_cuts(Doubles{1, 1, 1, 1, 10, 10}, 2) == Ints{0, 5, 6});
  CHECK(balanced_cuts(Doubles{5, 1, 1, 1, 1, 5, 1, 1}, 3) == Ints{0, 1, 5, 8});
  CHECK(balanced_cuts(Doubles{7}, 1) == Ints{0, 1});
}

TEST_CASE("parameters: two parts are the best of all cuts", "[plan][parameters]") {
  std::mt19937 random(2);
  for (int n = 0; n < 200; ++n) {
    Doubles weights(2 + random() % 10);
    std::generate(weights.begin(), weights.end(), [&] { return static_cast<double>(random() % 20); });
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto spread = [&](std::ptrdiff_t cut) {
      return std::abs(sum - 2 * std::accumulate(weights.begin(), weights.begin() + cut, 0.0));
    };
    double best = sum;
    for (std::size_t cut = 0; cut <= weights.size(); ++cut) {
      best = std::min(best, spread(static_cast<std::ptrdiff_t>(cut)));
    }
    CHECK(spread(balanced_cuts(weights, 2)[1]) == best);
  }
}

TEST_CASE("block partition: the worked examples", "[plan][block-partition]") {
  CHECK(block_partition(Doubles{1, 2, 3, 4, 5, 6}, 2) == Ints{4, 2});
  CHECK(block_partition(Doubles{1, 1, 1, 1, 10, 10}, 2) == Ints{5, 1});
  CHECK(block_partition(Doubles{5, 1, 1, 1, 1, 5, 1, 1}, 3) == Ints{2, 2, 4});
  CHECK(block_partition(Doubles{3, 3, 3, 3}, 2) == Ints{2, 2}); // equal costs are all scaled to 0: nothing moves
}

TEST_CASE("block partition: parts differ by at most the range of costs", "[plan][block-partition]") {
  // Bárány, Grinberg 2015: with costs scaled to [0, 1] the largest and smallest part differ by at most 1. Scaled back
  // with s_i = (c_i - low) / (high - low).
  std::mt19937 random(4);
  for (int n = 0; n < 300; ++n) {
    Doubles costs(3 + random() % 12);
    std::generate(costs.begin(), costs.end(), [&] { return static_cast<double>(random() % 50); });
    const int parts = 1 + static_cast<int>(random() % costs.size());
    const Ints sizes = block_partition(costs, parts);
    REQUIRE(std::accumulate(sizes.begin(), sizes.end(), 0) == static_cast<int>(costs.size()));
    const auto [low, high] = std::minmax_element(costs.begin(), costs.end());
    if (*low == *high) {
      continue;
    }
    Doubles loads;
    auto at = costs.begin();
    for (const int size : sizes) {
      double load = 0;
      for (int i = 0; i < size; ++i) {
        load += (*at++ - *low) / (*high - *low);
      }
      loads.push_back(load);
    }
    const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
    CHECK(*most <= *least + 1 + 1e-9);
  }
}

TEST_CASE("capability: cumulative load follows cumulative power, then memory is repaired", "[plan][capability]") {
  struct Case {
    Doubles load, power, layer_memory, device_memory;
    Ints cuts;
    bool fits;
  };
  const std::vector<Case> cases = {
      {{4, 4, 4, 4, 8, 8}, {1, 1, 2}, {}, {}, {0, 2, 4, 6}, true},     // 8 s each
      {{10, 1, 1, 1, 1, 10}, {1, 3}, {}, {}, {0, 1, 6}, true},         // a quarter of 24 is 6; 10 is nearest
      {{4, 4, 4, 4}, {3, 1}, {5, 5, 5, 5}, {10, 40}, {0, 2, 4}, true}, // by power 3 layers, but only 2 fit
      {{4, 4, 4, 4}, {1, 1}, {5, 5, 5, 5}, {4, 40}, {0, 1, 4}, false}, // not even one fits
  };
  for (const Case& one : cases) {
    const auto fits = [&](int part, int first, int last) {
      double need = 0;
      for (int layer = first; layer < last && !one.layer_memory.empty(); ++layer) {
        need += one.layer_memory[layer];
      }
      return one.layer_memory.empty() || need <= one.device_memory[part];
    };
    const CapabilityCuts got = capability_cuts(one.load, one.power, fits);
    CHECK(got.bounds == one.cuts);
    CHECK(got.overflowing == (one.fits ? -1 : 0));
  }
}

double worst_load(const Ints& cuts, const Doubles& loads, const Doubles& power) {
  double worst = 0;
  for (std::size_t part = 0; part < power.size(); ++part) {
    const double load = std::accumulate(loads.begin() + cuts[part], loads.begin() + cuts[part + 1], 0.0);
    worst = std::max(worst, load / power[part]);
  }
  return worst;
}

TEST_CASE("capability-refined never has a worse load than capability, and no single move helps it",
          "[plan][capability]") {
  std::mt19937 random(6);
  const auto always = [](int, int, int) { return true; };
  for (int n = 0; n < 200; ++n) {
    Doubles power(2 + random() % 3);
    std::generate(power.begin(), power.end(), [&] { return 1.0 + static_cast<double>(random() % 4); });
    Doubles loads(power.size() + random() % 8);
    std::generate(loads.begin(), loads.end(), [&] { return 1.0 + static_cast<double>(random() % 9); });
    const Ints before = capability_cuts(loads, power, always).bounds;
    const Ints after = refine_cuts(before, loads, power, always);
    const double worst = worst_load(after, loads, power);
    CHECK(worst <= worst_load(before, loads, power));
    for (std::size_t cut = 1; cut < power.size(); ++cut) {
      for (const int step : {-1, 1}) {
        Ints moved = after;
        moved[cut] += step;
        if (moved[cut] > moved[cut - 1] && moved[cut] < moved[cut + 1]) {
          CHECK(worst_load(moved, loads, power) >= worst * (1 - 1e-9));
        }
      }
    }
  }
}

// A chain on devices of the given speeds; bytes[i] leave operator i.
test::Toy chain(const Doubles& loads, const Doubles& speeds, const Doubles& bytes, double bandwidth) {
  test::Toy toy;
  toy.types.assign(speeds.size(), {});
  toy.devices.clear();
  for (std::size_t d = 0; d < speeds.size(); ++d) {
    toy.devices.push_back({static_cast<int>(d), bandwidth, 0});
    toy.types[d].peak = speeds[d];
  }
  for (std::size_t op = 0; op < loads.size(); ++op) {
    test::ToyOperator made;
    for (const double speed : speeds) {
      made.seconds.push_back(loads[op] / speed);
    }
    made.output = op < bytes.size() ? bytes[op] : 0;
    toy.operators.push_back(made);
  }
  toy.edges = test::chain_edges(static_cast<int>(loads.size()));
  return toy;
}

TEST_CASE("the least bottleneck of a chain over devices in a given order", "[plan][antichain]") {
  struct Case {
    Doubles loads, speeds, bytes;
    Ints cuts;
    double bottleneck;
  };
  const std::vector<Case> cases = {
      {{4, 4, 4, 4, 8, 8}, {1, 1, 2}, {}, {0, 2, 4, 6}, 8}, // 32 over a speed of 4: perfect balance
      {{2, 2, 2, 2}, {1, 1}, {10, 1, 10}, {0, 2, 4}, 4},    // the middle costs 2 x 1 s
      {{2, 2, 2, 2}, {1, 1}, {1, 10, 1}, {0, 1, 4}, 6},     // the middle would cost 2 x 10 s
  };
  for (const Case& one : cases) {
    const test::World world(chain(one.loads, one.speeds, one.bytes, 1));
    for (const std::string_view name : {"antichain", "optimal"}) {
      const PlanResult result = test::plan_of(world, name);
      REQUIRE(std::holds_alternative<Plan>(result));
      const Plan& plan = std::get<Plan>(result);
      CHECK(world.bottleneck_of(plan).value == test::near(one.bottleneck));
      CHECK(plan.objective->value.value == test::near(one.bottleneck));
    }
    CHECK(test::cuts_of(std::get<Plan>(test::plan_of(world, "antichain"))) == one.cuts);
  }
}

// Stages of four operators: each boundary stays or moves by one, and all nine pairs come.
TEST_CASE("first guesses by hand are uniform, each boundary moved by less than half a stage", "[plan][by-hand]") {
  const test::World world(chain(Doubles(12, 1), {1, 1, 1}, {}, 1));
  PlanRequest request = world.request();
  CHECK(test::cuts_of(std::get<Plan>(make_plan(test::strategy_row("by-hand"), request))) == Ints{0, 4, 8, 12});
  request.drawn = true;
  std::set<Ints> seen;
  for (request.seed = 1; request.seed <= 200; ++request.seed) {
    seen.insert(test::cuts_of(std::get<Plan>(make_plan(test::strategy_row("by-hand"), request))));
  }
  CHECK(seen.size() == 9);
  for (const Ints& cuts : seen) {
    CHECK((std::abs(cuts[1] - 4) <= 1 && std::abs(cuts[2] - 8) <= 1));
  }
}

} // namespace
} // namespace stagecraft
