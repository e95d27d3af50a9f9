// Laws that every strategy obeys, on every kind of graph and platform.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "tests/catch.hpp"
#include "tests/plan/random_toys.hpp"

namespace stagecraft {
namespace {

using test::kInfinite;

struct Named {
  std::string name;
  test::Toy toy;
};

// Graphs of every shape, as operators of type-0 and type-1 times.
std::vector<Named> graphs() {
  const std::vector<std::pair<std::string, std::vector<std::pair<int, int>>>> shapes = {
      {"lone operator", {}},
      {"chain", test::chain_edges(9)},
      {"diamond", {{0, 1}, {0, 2}, {1, 3}, {2, 3}}},
      {"skips", {{0, 1}, {1, 2}, {0, 2}, {2, 3}, {3, 4}, {2, 4}, {0, 4}, {4, 5}, {5, 6}}},
      {"branches", {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {0, 5}, {5, 6}, {2, 7}, {4, 7}, {6, 7}}},
      {"two sources, two sinks", {{0, 2}, {1, 2}, {2, 3}, {2, 4}, {4, 5}}},
      {"nothing connected", {{6, 7}}},
  };
  std::vector<Named> all;
  for (const auto& [name, edges] : shapes) {
    test::Toy toy;
    int operators = 1;
    for (const auto& edge : edges) {
      operators = std::max(operators, edge.second + 1);
    }
    for (int op = 0; op < operators; ++op) {
      const double seconds = 1 + (op * 7) % 5;
      toy.operators.push_back({{seconds, op % 2 == 0 ? seconds / 2 : seconds}, 8.0 + op % 3, 4.0 + op % 4, 16.0 + op});
    }
    toy.edges = edges;
    toy.input = 8;
    toy.micro_batches = 4;
    all.push_back({name, toy});
  }
  return all;
}

// The same graph on one device, on equal ones and on mixed ones.
std::vector<Named> problems() {
  std::vector<Named> all;
  for (const Named& graph : graphs()) {
    test::Toy toy = graph.toy;
    toy.types = {{kInfinite, 1}, {kInfinite, 2}};
    all.push_back({graph.name + ", one device", toy});
    toy.devices = {{0, 4, 0.5}, {0, 4, 0.5}, {0, 4, 0.5}, {0, 4, 0.5}};
    all.push_back({graph.name + ", a star", toy});
    toy.devices = {{0, 4, 0.5}, {1, 16, 0}, {0, 1, 2}, {1, 4, 0.5}};
    all.push_back({graph.name + ", mixed", toy});
  }
  return all;
}

// The same toy for a strategy that takes its degrees from the training: one replica, a pipeline over all devices.
test::Toy with_degrees(test::Toy toy, const StrategyRow& row) {
  if (row.takes_degrees) {
    toy.training.parallel = ParallelDegrees{.data = 1};
  }
  return toy;
}

TEST_CASE("a strategy refuses more devices than it plans for, and says what would take too long",
          "[plan][conformance]") {
  for (StrategyRow row : strategies()) {
    CAPTURE(row.name);
    const test::World world(with_degrees(problems().back().toy, row));
    const auto devices = static_cast<int>(world.request().devices.size());
    CHECK(!row.devices.why.empty());
    const PlanResult planned = make_plan(row, world.request());
    row.devices.most = devices;
    CHECK(make_plan(row, world.request()).index() == planned.index());
    row.devices.most = devices - 1;
    const PlanResult refused = make_plan(row, world.request());
    REQUIRE(std::holds_alternative<Infeasible>(refused));
    CHECK(std::get<Infeasible>(refused).reason == std::string(row.name) + " plans for at most " +
                                                      std::to_string(devices - 1) + " devices, not for " +
                                                      std::to_string(devices) + ": " + std::string(row.devices.why));
  }
}

TEST_CASE("every strategy gives a valid plan, or says why not, and the same twice", "[plan][conformance]") {
  for (const StrategyRow& row : strategies()) {
    int planned = 0;
    for (const Named& problem : problems()) {
      CAPTURE(row.name, problem.name);
      const test::World world(with_degrees(problem.toy, row));
      const PlanResult first = make_plan(row, world.request());
      const PlanResult second = make_plan(row, world.request());
      REQUIRE(first.index() == second.index());
      if (const Infeasible* reason = std::get_if<Infeasible>(&first)) {
        CHECK(!reason->reason.empty());
        CHECK(reason->reason == std::get<Infeasible>(second).reason);
        continue;
      }
      const Plan& plan = std::get<Plan>(first);
      ++planned;
      CHECK(plan == std::get<Plan>(second));
      CHECK(plan.strategy == row.name);
      CHECK(join(plan_defects(plan, world.model, world.platform), "\n").empty());
      if (row.pipeline) {
        CHECK(is_pipeline(plan, 1));
      }
      for (const Stage& stage : plan.stages) {
        CHECK(std::is_sorted(stage.operators.begin(), stage.operators.end()));
      }
    }
    CHECK(planned > static_cast<int>(problems().size()) / 2);
  }
}

TEST_CASE("every strategy stays within memory, or names the missing bytes", "[plan][conformance]") {
  for (const StrategyRow& row : strategies()) {
    int refused = 0;
    for (const Named& problem : problems()) {
      for (const double memory : {50.0, 150.0, 300.0, 600.0}) {
        CAPTURE(row.name, problem.name, memory);
        test::Toy toy = with_degrees(problem.toy, row);
        toy.types[0].memory = memory;
        toy.types[1].memory = 2 * memory;
        const test::World world(toy);
        const PlanRequest request = world.request();
        const PlanResult result = make_plan(row, request);
        if (const Plan* plan = std::get_if<Plan>(&result)) {
          const PlanCost cost = cost_plan(world.problem, *plan);
          CHECK(!memory_shortage(world.problem, *plan, cost, request.in_flight, 1).has_value());
          continue;
        }
        const std::string& reason = std::get<Infeasible>(result).reason;
        const bool names_bytes = reason.find(" B") != std::string::npos || reason.find("KiB") != std::string::npos;
        const bool too_many_stages = reason.find("fewer than the") != std::string::npos;
        CAPTURE(reason);
        CHECK((names_bytes || too_many_stages));
        ++refused;
      }
    }
    CHECK(refused > 0);
  }
}

TEST_CASE("every strategy names a kernel that no device has", "[plan][conformance]") {
  test::Toy toy;
  toy.operators.assign(4, {{1}});
  toy.operators[2].seconds = {kInfinite};
  toy.edges = test::chain_edges(4);
  toy.devices = {{}, {}};
  for (const StrategyRow& row : strategies()) {
    const PlanResult result = make_plan(row, test::World(with_degrees(toy, row)).request());
    CAPTURE(row.name);
    REQUIRE(std::holds_alternative<Infeasible>(result));
    CHECK_THAT(std::get<Infeasible>(result).reason, Catch::Contains("kernel") && Catch::Contains("'2'"));
  }
}

TEST_CASE("no pipeline strategy has a smaller bottleneck than optimal", "[plan][conformance]") {
  std::mt19937 random(21);
  int compared = 0;
  for (int n = 0; n < 150; ++n) {
    const test::World world(
        test::random_toy(random, {.operators = 10, .devices = 4, .memory = n % 2 == 1, .kernels = n % 3 == 0}));
    const PlanResult best = test::plan_of(world, "optimal");
    for (const StrategyRow& row : strategies()) {
      const PlanResult result = make_plan(row, world.request());
      const Plan* plan = std::get_if<Plan>(&result);
      if (!row.pipeline || plan == nullptr) {
        continue;
      }
      CAPTURE(n, row.name);
      REQUIRE(std::holds_alternative<Plan>(best));
      CHECK(world.bottleneck_of(std::get<Plan>(best)) <= world.bottleneck_of(*plan) * (1 + 1e-9));
      ++compared;
    }
  }
  CHECK(compared > 300);
}

// What schedules may tell a planner: how much stages hold, and how many versions of the weights.
struct Told {
  InFlight in_flight;
  int versions = 1;
};

PlanResult plan_as_told(const StrategyRow& row, const test::World& world, const Told& told, ProblemMemo* memo) {
  PlanRequest request = world.request();
  request.in_flight = told.in_flight;
  request.versions = told.versions;
  request.memo = memo;
  return make_plan(row, request);
}

bool are_same(const PlanResult& one, const PlanResult& other) {
  const Plan* plan = std::get_if<Plan>(&one);
  return one.index() == other.index() &&
         (plan != nullptr ? *plan == std::get<Plan>(other)
                          : std::get<Infeasible>(one).reason == std::get<Infeasible>(other).reason);
}

TEST_CASE("what planners keep of a problem changes no plan, whatever was asked before", "[plan][conformance][memo]") {
  const std::vector<Told> schedules = {{[](int, int) { return 4.0; }},
                                       {[](int stage, int stages) { return std::min(4.0, 1.0 * stages - stage); }},
                                       {[](int, int) { return 1.0; }},
                                       {[](int, int) { return 1.0; }, 3}};
  for (const StrategyRow& row : strategies()) {
    int differing = 0; // plans that the schedule shaped, else the law would say nothing
    for (const Named& problem : problems()) {
      for (const double memory : {150.0, 300.0}) {
        CAPTURE(row.name, problem.name, memory);
        test::Toy toy = with_degrees(problem.toy, row);
        toy.types[0].memory = memory;
        toy.types[1].memory = 2 * memory;
        const test::World world(toy);
        ProblemMemo memo(world.problem);
        std::optional<PlanResult> before;
        for (const Told& told : schedules) {
          const PlanResult alone = plan_as_told(row, world, told, nullptr);
          const PlanResult after_others = plan_as_told(row, world, told, &memo);
          CHECK(are_same(alone, after_others));
          differing += before && before->index() != alone.index() ? 1 : 0;
          before = alone;
        }
      }
    }
    CHECK(differing > 0);
  }
}

TEST_CASE("what was found for one schedule serves one that holds more only where it is still the best",
          "[plan][conformance][memo]") {
  const std::vector<Told> schedules = {{[](int, int) { return 1.0; }},
                                       {[](int, int) { return 1.0; }, 2},
                                       {[](int stage, int stages) { return 1.0 * stages - stage; }, 2},
                                       {[](int, int) { return 4.0; }, 2},
                                       {[](int, int) { return 4.0; }, 3},
                                       {[](int, int) { return 4.0; }, 1}};
  std::mt19937 random(31);
  std::map<std::string_view, int> same, different; // plans of one schedule and the next
  for (int n = 0; n < 60; ++n) {
    const test::Toy toy = test::random_toy(random, {.operators = 9, .devices = 4, .memory = true});
    for (const StrategyRow& row : strategies()) {
      CAPTURE(n, row.name);
      const test::World world(with_degrees(toy, row));
      ProblemMemo memo(world.problem);
      std::optional<PlanResult> before;
      for (const Told& told : schedules) {
        const PlanResult alone = plan_as_told(row, world, told, nullptr);
        CHECK(are_same(alone, plan_as_told(row, world, told, &memo)));
        if (before) {
          ++(are_same(*before, alone) ? same : different)[row.name];
        }
        before = alone;
      }
    }
  }
  for (const StrategyRow& row : strategies()) {
    CAPTURE(row.name);
    CHECK(same[row.name] > 0);
    CHECK(different[row.name] > 0);
  }
}

TEST_CASE("what is kept of one problem serves neither another nor other devices", "[plan][memo]") {
  const test::World world(problems()[1].toy), other(problems()[1].toy);
  ProblemMemo memo(world.problem);
  PlanRequest request = world.request();
  request.memo = &memo;
  int made = 0;
  const auto number = [&] { return *kept_for<int>(request, [&] { return ++made; }); };
  CHECK(number() == 1);
  CHECK(number() == 1);
  request.devices.pop_back();
  CHECK(number() == 2);
  request.state_cap -= 1;
  CHECK(number() == 3);
  PlanRequest elsewhere = other.request();
  elsewhere.memo = &memo;
  CHECK(*kept_for<int>(elsewhere, [&] { return ++made; }) == 4);
  CHECK(*kept_for<int>(elsewhere, [&] { return ++made; }) == 5);
  CHECK(number() == 3);
}

double optimal_bottleneck(const test::Toy& toy) {
  const test::World world(toy);
  const PlanResult result = test::plan_of(world, "optimal");
  const Plan* plan = std::get_if<Plan>(&result);
  return plan != nullptr ? world.bottleneck_of(*plan).value : kInfinite;
}

TEST_CASE("more bandwidth, more memory or one more device never raise the least bottleneck", "[plan][conformance]") {
  std::mt19937 random(23);
  int lower = 0;
  for (int n = 0; n < 150; ++n) {
    CAPTURE(n);
    const test::Toy toy = test::random_toy(random, {.operators = 9, .devices = 3, .memory = n % 2 == 1});
    const double before = optimal_bottleneck(toy);
    test::Toy faster = toy;
    for (test::ToyDevice& device : faster.devices) {
      device.bandwidth *= 2;
    }
    test::Toy roomier = toy;
    for (test::ToyType& type : roomier.types) {
      type.memory *= 1.5;
    }
    test::Toy more = toy;
    more.devices.push_back(toy.devices.back());
    for (const test::Toy& better : {faster, roomier, more}) {
      const double after = optimal_bottleneck(better);
      CHECK(after <= before * (1 + 1e-9));
      lower += after < before ? 1 : 0;
    }
  }
  CHECK(lower > 50);
}

TEST_CASE("names of strategies are unique and have a line of help", "[plan][conformance]") {
  std::vector<std::string> names = names_of(strategies());
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  for (const StrategyRow& row : strategies()) {
    CHECK(!row.help.empty());
  }
}

TEST_CASE("pipelines of several chunks put chunk c of rank r on device r", "[plan][conformance][chunks]") {
  for (const StrategyRow& row : strategies()) {
    for (const Named& problem : problems()) {
      const test::World world(with_degrees(problem.toy, row));
      PlanRequest request = world.request();
      request.chunks = 2;
      request.in_flight = [](int, int) { return 1.0; };
      const PlanResult result = make_plan(row, request);
      const Plan* plan = std::get_if<Plan>(&result);
      if (!row.pipeline || plan == nullptr) {
        continue;
      }
      CAPTURE(row.name, problem.name);
      CHECK(join(plan_defects(*plan, world.model, world.platform), "\n").empty());
      // Some find no chunks; the schedule then runs their plans without.
      if (row.name != "eft-contiguous" && row.name != "pipedream" && row.name != "dapple") {
        CHECK(is_pipeline(*plan, 2));
      }
    }
  }
}

} // namespace
} // namespace stagecraft
