// The strategy `pipedream`: levels from a platform, stages onto devices, and the replay of replicated stages.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <filesystem>

#include "sim/base/system/file.hpp"
#include "sim/replay/replay.hpp"
#include "sim/timeline/metrics.hpp"
#include "sim/workload/import/import.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

using Devices = std::vector<DeviceId>;

// Nodes with so many devices each, on `inside` links to their switch and `between` links from there to the others.
Platform cluster(const DeviceType& type, const std::vector<int>& nodes, double inside, double between) {
  Platform platform;
  platform.types = {type};
  const auto join = [&](int a, int b, double bandwidth) {
    platform.links.push_back({"", a, b, BytesPerSecond{bandwidth}, Seconds{0}});
    platform.links.push_back({"", b, a, BytesPerSecond{bandwidth}, Seconds{0}});
  };
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    platform.nodes.push_back({"node" + std::to_string(node), {}});
    for (int i = 0; i < nodes[node]; ++i) {
      const auto device = static_cast<DeviceId>(platform.devices.size());
      platform.devices.push_back({"d" + std::to_string(device), 0, static_cast<int>(node)});
      platform.vertices.push_back({Vertex::Kind::device, platform.devices.back().name, device});
    }
  }
  const int devices = static_cast<int>(platform.devices.size());
  const int center = devices + static_cast<int>(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    platform.vertices.push_back({Vertex::Kind::fabric_switch, "switch" + std::to_string(node), -1});
    join(devices + static_cast<int>(node), center, between);
  }
  platform.vertices.push_back({Vertex::Kind::fabric_switch, "center", -1});
  for (DeviceId device = 0; device < devices; ++device) {
    join(device, devices + platform.devices[device].node, inside);
  }
  return platform;
}

// A toy on a cluster, its micro-batches divisible at will.
struct Divisible {
  Divisible(test::Toy what, Platform where)
      : toy(std::move(what)), model(test::model_of(toy)), platform(std::move(where)), cost(toy), router(platform),
        problem(make_problem(model, platform, cost, toy.training, router, toy.micro_batches)) {
    problem.divisible_at_will = true;
    problem.samples = 1;
  }

  Plan plan(const Devices& devices) const {
    const PlanRequest request{.problem = problem, .devices = devices, .in_flight = [](int, int) { return 1.0; }};
    return std::get<Plan>(make_plan(test::strategy_row("pipedream"), request));
  }

  test::Toy toy;
  ModelGraph model;
  Platform platform;
  test::TableCost cost;
  Router router;
  Problem problem;
};

DeviceType toy_type() { return test::platform_of({.operators = {}}).types.front(); }

TEST_CASE("the stage with most work gets replicas", "[plan][pipedream]") {
  // a: 6 s and no parameters, b: 3 s and so many that two replicas would take far longer to agree.
  test::Toy toy;
  toy.operators = {{{6}, 4, 0}, {{3}, 4, 1000}};
  toy.edges = test::chain_edges(2);
  toy.micro_batches = 4;
  toy.training.global_batch = 4;
  const Divisible world(toy, cluster(toy_type(), {3}, 8, 8));
  const Plan plan = world.plan({0, 1, 2});
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].devices == Devices{0, 1});
  CHECK(plan.stages[0].share(0) == test::near(0.5));
  CHECK(plan.stages[1].devices == Devices{2});
  CHECK(plan.objective == Objective{"stage time", Seconds{3}}); // 6/2, 3, and 2 x 4 B at 8 B/s
  CHECK(is_pipeline(plan, 1));
}

TEST_CASE("a pipeline of replicated stages replays as its schedule says", "[plan][pipedream]") {
  // As above without parameters and without delay on the links: stages of F 1 s, B 2 s. Both schedules take (M+P-1) 3
  // s.
  test::Toy toy;
  toy.operators = {{{6}, 4, 0}, {{3}, 4, 0}};
  toy.edges = test::chain_edges(2);
  toy.micro_batches = 4;
  toy.training.global_batch = 4;
  const Divisible world(toy, cluster(toy_type(), {3}, 1e15, 1e15));
  Plan plan;
  plan.stages = {{.operators = {0}, .devices = {0, 1}}, {.operators = {1}, .devices = {2}}};
  const PlanCost cost = cost_plan(world.problem, plan);
  Router router(world.platform);
  for (const char* name : {"1f1b", "gpipe", "eager-1f1b", "zb-h1"}) {
    CAPTURE(name);
    const ScheduleRow& row = find_by_name(schedules(), name, "schedule", {});
    const Schedule schedule = std::get<Schedule>(make_schedule(row, {2, 4, 1}));
    const TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
    const ReplayRequest request{graph, world.platform};
    const double expected = std::string(name) == "zb-h1" ? 4 * 3 + 1 * (1 + 1 - 1) : (4 + 2 - 1) * 3;
    for (const auto replay : {replay_analytic, replay_simgrid}) {
      const Metrics metrics = measure(graph, replay(std::span(&request, 1)).front(), world.platform);
      CHECK(metrics.iteration.value == Approx(expected).epsilon(1e-9));
      CHECK(metrics.busy[0].value == Approx(12).epsilon(1e-9));
      CHECK(metrics.busy[1].value == Approx(12).epsilon(1e-9));
    }
  }
}

TEST_CASE("nodes are a second level", "[plan][pipedream]") {
  // a and b take 4 s, have 2 B of parameters each and 6 B between them; all links give 4 B/s. In a node of two devices
  // a cut takes max(4, 2 x 6/4) = 4 s, two replicas (8 + 4 x 1/2 x 4/4) / 2 = 5 s. Two nodes with that cut each take
  // (4 + 4 x 1/2 x 4/4 / 2) / 2 = 2.5 s; a on one node and b on the other 2 x 6/4 = 3 s.
  test::Toy toy;
  toy.operators = {{{4}, 6, 0.5}, {{4}, 6, 0.5}};
  toy.edges = test::chain_edges(2);
  const Divisible world(toy, cluster(toy_type(), {2, 2}, 4, 4));
  const Plan plan = world.plan({0, 1, 2, 3});
  CHECK(plan.objective->value.value == test::near(2.5));
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].devices == Devices{0, 2}); // of either node
  CHECK(plan.stages[1].devices == Devices{1, 3});
  CHECK(plan.note.empty());
}

TEST_CASE("nodes of unequal size count as groups of one size", "[plan][pipedream]") {
  test::Toy toy;
  toy.operators.assign(6, {{1}, 4, 0});
  toy.edges = test::chain_edges(6);
  const Divisible twos(toy, cluster(toy_type(), {4, 2}, 4, 4));
  CHECK(twos.plan({0, 1, 2, 3, 4, 5}).note == "nodes differ in size: planned as 3 equal groups of 2");
  const Divisible ones(toy, cluster(toy_type(), {3, 2}, 4, 4));
  const Plan plan = ones.plan({0, 1, 2, 3, 4});
  CHECK(plan.note == "nodes differ in size: planned as 5 equal groups of 1");
  CHECK(plan.objective->value.value == test::near(6.0 / 5));
}

TEST_CASE("on mixed devices the stage with most work gets the fastest, replicas share by speed", "[plan][pipedream]") {
  test::Toy toy;
  toy.operators = {{{1, 2}, 0, 0}, {{3, 6}, 0, 0}};
  toy.edges = test::chain_edges(2);
  toy.types = {{}, {}};
  toy.devices = {{1, 1e3, 0}, {0, 1e3, 0}};                                 // slow, fast
  const PlanResult straight = test::plan_of(test::World(toy), "pipedream"); // one sample: no replicas
  CHECK(std::get<Plan>(straight).stages[0].devices == Devices{0});
  CHECK(std::get<Plan>(straight).stages[1].devices == Devices{1});
  CHECK_THAT(std::get<Plan>(straight).note, Catch::Contains("mean speed"));
  std::swap(toy.operators[0], toy.operators[1]);
  const PlanResult swapped = test::plan_of(test::World(toy), "pipedream");
  CHECK(std::get<Plan>(swapped).stages[0].devices == Devices{1});
  // Of one operator the fast device takes two thirds: 2 / (1/3 + 1/6) = 4 s at mean speed, halved.
  toy.operators = {{{3, 6}, 0, 0}};
  toy.edges = {};
  const Divisible one(toy, test::platform_of(toy));
  const Plan plan = one.plan({0, 1});
  CHECK(plan.objective->value.value == test::near(2));
  REQUIRE(plan.stages.size() == 1);
  CHECK(plan.stages[0].shares[0] == test::near(1.0 / 3));
}

TEST_CASE("memory moves the cut", "[plan][pipedream]") {
  // Four operators of 1 s; the first two hold 100 parameters of 12 B each. A device of 1300 B holds one of them, so
  // two replicas of all (2 s) are out, and so is the even cut; left are 1 + 3.
  test::Toy toy;
  toy.operators = {{{1}, 0, 100}, {{1}, 0, 100}, {{1}, 0, 0}, {{1}, 0, 0}};
  toy.edges = test::chain_edges(4);
  toy.devices = {{0, 1e6, 0}, {0, 1e6, 0}};
  toy.types = {{1300}};
  const PlanResult result = test::plan_of(test::World(toy), "pipedream");
  const Plan& plan = std::get<Plan>(result);
  CHECK(test::cuts_of(plan) == std::vector<int>{0, 1, 4});
  CHECK(plan.memory_bound);
  CHECK(plan.objective->value.value == test::near(3));
}

TEST_CASE("the strategy gives the published optimiser's stage times", "[plan][pipedream][data]") {
  const std::filesystem::path folder = test::source_dir() / "../shared/data/pipedream";
  if (!std::filesystem::exists(folder)) {
    WARN("skipped: " << folder << " is absent");
    return;
  }
  DeviceType type = toy_type();
  for (auto& rates : type.rates) {
    rates.fill(FlopsPerSecond{1});
  }
  const std::map<std::string, Platform> platforms = {
      {"n2.comp1", make_star_platform(type, 2, BytesPerSecond{1e9}, Seconds{0})},
      {"n4.comp1", make_star_platform(type, 4, BytesPerSecond{1e9}, Seconds{0})},
      {"n8.comp1", make_star_platform(type, 8, BytesPerSecond{1e9}, Seconds{0})},
      {"n4x4.comp1", cluster(type, {4, 4, 4, 4}, 10e9, 1.25e9)}};
  int compared = 0;
  const auto expected = nlohmann::json::parse(read_file(folder / "expected_optimizer.json"));
  for (const auto& run : expected.at("runs")) {
    const std::string tag = run.at("tag").get<std::string>();
    const std::string name = tag.substr(0, tag.find(".n"));
    const auto platform = platforms.find(tag.substr(name.size() + 1));
    if (platform == platforms.end()) {
      continue;
    }
    CAPTURE(tag);
    ModelGraph model = load_model(folder / "profiles" / (name + ".graph.txt"));
    model.profiles.front().samples = 1; // the minibatch as a whole
    const auto cost = make_profiled({.model = model});
    Router router(platform->second);
    const Training training;
    const Problem problem =
        make_problem(model, platform->second, *std::get<std::unique_ptr<CostModel>>(cost), training, router, 1);
    PlanRequest request{.problem = problem, .devices = {}, .in_flight = [](int, int) { return 1.0; }};
    for (std::size_t device = 0; device < platform->second.devices.size(); ++device) {
      request.devices.push_back(static_cast<DeviceId>(device));
    }
    const Plan plan = std::get<Plan>(make_plan(test::strategy_row("pipedream"), request));
    CHECK(plan.objective->name == "stage time");
    CHECK(plan.objective->value.value == Approx(run.at("optimal_stage_time_s").get<double>()).epsilon(1e-9));
    CHECK(devices_of(plan).size() == request.devices.size());
    ++compared;
  }
  CHECK(compared == 6 * 4);
}

} // namespace
} // namespace stagecraft
