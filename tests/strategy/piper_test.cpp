// piper: the public program's results, loads by hand, memory pressure, mixed devices, replays.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iostream>
#include <random>

#include "sim/base/system/file.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/problem_memo.hpp"
#include "sim/strategy/dynamic_programming/piper_segments.hpp"
#include "sim/workload/import/import.hpp"
#include "tests/catch.hpp"
#include "tests/plan/problems.hpp"
#include "tests/plan/random_toys.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

using test::near;
using Json = nlohmann::json;

// A planning input on its own devices, with so many whole micro-batches.
class Given {
public:
  Given(const std::string& text, int micro_batches)
      : model_(import_piper(text, "input.json", {})), platform_(star()),
        cost_(std::get<std::unique_ptr<CostModel>>(make_profiled({model_}))), router_(platform_) {
    training_.global_batch = micro_batches;
    problem_.emplace(make_problem(model_, platform_, *cost_, training_, router_, micro_batches));
  }

  PlanResult plan() const {
    PlanRequest request{.problem = *problem_, .devices = {}};
    for (std::size_t d = 0; d < platform_.devices.size(); ++d) {
      request.devices.push_back(static_cast<DeviceId>(d));
    }
    const int m = problem_->micro_batches;
    request.in_flight = [m](int stage, int stages) { return static_cast<double>(std::min(stages - stage, m)); };
    return make_plan(test::strategy_row("piper"), request);
  }

  const ModelGraph& model() const { return model_; }
  const Problem& problem() const { return *problem_; }

private:
  Platform star() const {
    const BroughtDevices& brought = model_.devices.front();
    DeviceType type;
    type.name = brought.type;
    for (auto& row : type.rates) {
      row.fill(FlopsPerSecond{1});
    }
    type.memory = brought.memory;
    type.memory_bandwidth = BytesPerSecond{test::kInfinite};
    return make_star_platform(type, brought.count, brought.bandwidth, Seconds{0});
  }

  ModelGraph model_;
  Platform platform_;
  std::unique_ptr<CostModel> cost_;
  Router router_;
  Training training_;
  std::optional<Problem> problem_;
};

TEST_CASE("max-loads of the public program", "[plan][piper]") {
  const std::filesystem::path folder = test::source_dir() / "../shared/data/piper";
  if (!std::filesystem::exists(folder / "expected.json")) {
    std::cout << "skipped: no ../shared/data/piper\n";
    return;
  }
  const Json expected = Json::parse(read_file(folder / "expected.json"));
  constexpr double kGiB = 1073741824.0;
  for (const Json& run : expected.at("runs")) {
    Json input = Json::parse(read_file(folder / run.at("input").get<std::string>()));
    input["maxDevices"] = run.at("devices");
    input["maxMemoryPerDevice"] = run.at("mem_GiB").get<double>() * kGiB;
    input["bandwidth"] = run.at("bandwidth_GiB_s").get<double>() * kGiB;
    CAPTURE(run.at("devices"), run.at("mem_GiB"));
    const Given given(input.dump(), run.at("microbatches_per_batch").get<int>());
    const PlanResult result = given.plan();
    if (run.contains("infeasible")) {
      CHECK(std::holds_alternative<Infeasible>(result));
      continue;
    }
    REQUIRE(std::holds_alternative<Plan>(result));
    const Plan& plan = std::get<Plan>(result);
    CHECK(plan.objective->name == "max-load");
    CHECK(plan.objective->value.value == near(run.at("max_load_time_per_sample").get<double>()));
    CHECK(plan.stages.size() == run.at("stages").size());
  }
}

// A chain of equal nodes: 12 s, 20 B a micro-batch, 5 B always, 4 B to the next; recomputed 15 s, 2 B and 23 B.
std::string chain(int nodes, int devices, double memory, int most_degree = 1) {
  Json input = {{"maxDevices", devices}, {"maxMemoryPerDevice", memory}, {"bandwidth", 2}, {"mbsInBatch", 8}};
  input["nodes"] = Json::array();
  input["edges"] = Json::array();
  for (int id = 0; id < nodes; ++id) {
    Json before = Json::object();
    Json after = Json::object();
    if (id > 0) {
      before[std::to_string(id - 1)] = 0;
      input["edges"].push_back({{"sourceId", id - 1}, {"destId", id}, {"communicationCost", 4}});
    }
    if (id + 1 < nodes) {
      after[std::to_string(id + 1)] = 1;
    }
    Json degrees = Json::object();
    for (int t = 1; t <= most_degree; t *= 2) {
      const auto way = [&](const char* name, double seconds, double a, double b) {
        return Json{{"id", name},
                    {"timePerSample", seconds / t},
                    {"parameterSize", 8.0 / t},
                    {"memoryUsageA", a / t},
                    {"memoryUsageB", b / t},
                    {"syncTimeFw", before},
                    {"syncTimeBw", after}};
      };
      degrees[std::to_string(t)] = {way("vanilla", 12, 20, 5), way("activation recomp", 15, 2, 23)};
    }
    input["nodes"].push_back({{"id", id}, {"TMPCs", degrees}});
  }
  return input.dump();
}

TEST_CASE("memory pressure turns data parallelism into a pipeline, then recompute, then nothing fits",
          "[plan][piper]") {
  // One stage on two devices: 4 nodes hold 4 (20 + 5) B; 24 s each, and 4/2 of the 32 B of parameters for 8
  // micro-batches at 2 B/s: 4 s of which an eighth. Two stages of 2: s = 2 and 1, 2 (2 x 20 + 5) B on the first device;
  // 24 s and (4 + 1) B in or out of it, twice, at 2 B/s.
  const Given roomy(chain(4, 2, 100), 8);
  const Plan data = std::get<Plan>(roomy.plan());
  CHECK(data.stages.size() == 1);
  CHECK(data.objective->value.value == near(24 + 4 * 1 * 32 / 2.0 / 8 / 2));
  const Given tight(chain(4, 2, 99), 8);
  const Plan pipeline = std::get<Plan>(tight.plan());
  REQUIRE(pipeline.stages.size() == 2);
  CHECK(pipeline.objective->value.value == near(24 + 2 * (4 + 1) / 2.0));
  CHECK(pipeline.stages[0].recompute == Recompute::none);
  // 89 B: the first of two stages has one node recompute, 45 + 27, and 3 s more.
  const Given tighter(chain(4, 2, 89), 8);
  const Plan selective = std::get<Plan>(tighter.plan());
  CHECK(selective.objective->value.value == near(27 + 2 * (4 + 1) / 2.0));
  CHECK(selective.stages[0].recompute == Recompute::selective);
  CHECK(selective.stages[0].recomputed.size() == 1);
  // What the plan costs here: three of the 24 s more, in R; memory as in the file.
  const PlanCost cost = cost_plan(tighter.problem(), selective);
  CHECK(cost.stages[0].replicas[0].busy().value == near(27));
  CHECK(cost.stages[0].replicas[0].recompute.value == near(3));
  CHECK(cost.stages[0].replicas[0].memory.total(2, 1).value == near(2 * 22 + 28));
  // Two nodes on the last device hold at least 2 (2 + 23) B, on the first 2 x 2 more.
  CHECK(std::holds_alternative<Plan>(Given(chain(4, 2, 54), 8).plan()));
  const PlanResult none = Given(chain(4, 2, 49), 8).plan();
  REQUIRE(std::holds_alternative<Infeasible>(none));
  CHECK_THAT(std::get<Infeasible>(none).reason, Catch::Contains("49.00 B"));
}

TEST_CASE("a tensor degree that fits where nothing else does", "[plan][piper]") {
  // One node on two devices at degree 2: 10 + 2.5 B each. Degree 1 holds 25 B at least, recomputed or not.
  const Given given(chain(1, 2, 13, 2), 8);
  const Plan plan = std::get<Plan>(given.plan());
  CHECK(plan.stages[0].tensor_parallel == 2);
  CHECK(plan.objective->value.value == near(6));
  const PlanCost cost = cost_plan(given.problem(), plan);
  CHECK(cost.stages[0].replicas[1].busy().value == near(6));
  CHECK(cost.stages[0].replicas[1].memory.total(1, 1).value == near(12.5));
}

TEST_CASE("replicas divide the number of micro-batches", "[plan][piper]") {
  CHECK(std::get<Plan>(Given(chain(1, 3, 100), 8).plan()).stages[0].replicas() == 2);
  CHECK(std::get<Plan>(Given(chain(1, 3, 100), 9).plan()).stages[0].replicas() == 3);
}

// The least max-load of any contiguous split of a chain with any replicas, memory aside: loads as piper defines them.
double brute_force(const test::World& world, int first, int devices) {
  const int n = world.model.size();
  if (first == n) {
    return 0;
  }
  double best = test::kInfinite;
  for (int last = first + 1; last <= n && devices > 0; ++last) {
    double seconds = 0;
    double parameters = 0;
    for (int op = first; op < last; ++op) {
      seconds += world.toy.operators[op].seconds[0];
      parameters += world.toy.operators[op].parameters * 4;
    }
    const double bytes =
        (first > 0 ? world.toy.operators[first - 1].output : 0) + (last < n ? world.toy.operators[last - 1].output : 0);
    for (int d = 1; d <= devices; ++d) {
      const double spb = 1 / world.toy.devices[0].bandwidth;
      const double load =
          seconds / d + 2 * bytes / d * spb + 4 * (d - 1) * parameters / d / world.toy.micro_batches * spb;
      best = std::min(best, std::max(load, brute_force(world, last, devices - d)));
    }
  }
  return best;
}

TEST_CASE("on chains of a cost model the load is the least of all splits", "[plan][piper]") {
  std::mt19937 random(5);
  for (int n = 0; n < 30; ++n) {
    test::Toy toy;
    const int operators = 2 + static_cast<int>(random() % 5);
    for (int op = 0; op < operators; ++op) {
      const auto pick = [&](unsigned least, unsigned most) {
        return static_cast<double>(least + random() % (most - least + 1));
      };
      toy.operators.push_back({{pick(1, 9)}, pick(1, 20), pick(0, 3)});
    }
    toy.edges = test::chain_edges(operators);
    toy.devices.assign(2 + random() % 3, {0, 4});
    toy.micro_batches = 4;
    test::World world(toy);
    for (Operator& op : world.model.operators) {
      op.kind = KernelKind::normalization; // no degree above 1 gains: see below
    }
    world.problem.divisible_at_will = true;
    const Plan plan = std::get<Plan>(test::plan_of(world, "piper"));
    CAPTURE(n);
    // A group of t does what t replicas do, without sending parameters: only a bound where that is used.
    const double least = brute_force(world, 0, static_cast<int>(toy.devices.size()));
    const bool grouped = std::any_of(plan.stages.begin(), plan.stages.end(),
                                     [](const Stage& stage) { return stage.tensor_parallel > 1; });
    CHECK(plan.objective->value.value <= least * (1 + 1e-9));
    CHECK((grouped || plan.objective->value.value == near(least)));
    CHECK(join(plan_defects(plan, world.model, world.platform), "; ").empty());
  }
}

TEST_CASE("a stage of any graph costs what its operators and borders say", "[plan][piper]") {
  // The load of d replicas without a limit of memory: times/d, tensors in and out once each, 4 (d-1)/d of the
  // parameters' gradients per M micro-batches. With just as much memory as 2 micro-batches need it stays that, with a
  // byte less it does not, unless an operator recomputes in no time.
  std::mt19937 random(9);
  for (int n = 0; n < 40; ++n) {
    test::Toy toy = test::random_toy(random, {.operators = 7});
    toy.types.resize(1);
    toy.devices.assign(3, {0, 4});
    test::World world(toy);
    world.problem.divisible_at_will = true;
    PiperInstance instance = piper_instance(world.request(), {0, 1, 2});
    const AntichainStates states = antichain_states(world.model, 1000);
    const auto above = states_above(states);
    PiperSums sums(instance, states);
    PiperSegment segment(sums);
    for (int lower = 0; lower < states.count(); ++lower) {
      for (const int upper : above[lower]) {
        std::vector<char> inside(world.model.size());
        double seconds = 0;
        double parameters = 0;
        double stash = 0;
        bool for_nothing = false;
        for (OperatorId op = 0; op < world.model.size(); ++op) {
          inside[op] = has_bit(states.ideals.row(upper), op) && !has_bit(states.ideals.row(lower), op) ? 1 : 0;
          seconds += inside[op] != 0 ? toy.operators[op].seconds[0] : 0;
          parameters += inside[op] != 0 ? toy.operators[op].parameters : 0;
          stash += inside[op] != 0 ? toy.operators[op].stash : 0;
          for_nothing = for_nothing || (inside[op] != 0 && toy.operators[op].seconds[0] == 0);
        }
        const Problem::Border border = world.problem.border(inside);
        double sent = border.outgoing.value;
        for (OperatorId op = 0; op < world.model.size(); ++op) {
          const auto& users = world.model.successors[op];
          sent +=
              inside[op] == 0 && std::any_of(users.begin(), users.end(), [&](int user) { return inside[user] != 0; })
                  ? world.problem.output_bytes(op).value
                  : 0;
        }
        segment.set(lower, upper, 0);
        for (int d = 1; d <= 3; ++d) {
          const double load =
              seconds / d + 2 * sent / d / 4 + 4.0 * (d - 1) * 4 * parameters / d / toy.micro_batches / 4;
          CAPTURE(n, lower, upper, d);
          instance.memory = test::kInfinite;
          CHECK(segment.load(d, 2) == near(load));
          instance.memory = 12 * parameters + 2 * stash + 2 * (border.incoming + border.outgoing).value / d + 1e-6;
          CHECK(segment.load(d, 2) == near(load));
          instance.memory -= 1;
          CHECK((segment.load(d, 2) > load * (1 + 1e-9) || for_nothing));
        }
      }
    }
  }
}

TEST_CASE("mixed devices are planned as the slowest of those used, and the note says so", "[plan][piper]") {
  test::Toy toy;
  toy.operators.assign(4, {{1, 10}});
  toy.edges = test::chain_edges(4);
  toy.types = {{}, {}};
  toy.devices = {{1}, {0}, {0}};
  const test::World world(toy);
  const Plan plan = std::get<Plan>(test::plan_of(world, "piper"));
  for (const Stage& stage : plan.stages) {
    CHECK(std::find(stage.devices.begin(), stage.devices.end(), 0) == stage.devices.end());
  }
  CHECK_THAT(plan.note, Catch::Contains("2 devices of 1 of 2 types"));
}

TEST_CASE("where fast devices had room before, slow ones still help a schedule that holds more",
          "[plan][piper][memo]") {
  // Each of two operators holds 12 x 10 B of weights, gradients and states, and 40 B for each micro-batch in flight;
  // buffers are 2 x 40 B where a tensor comes in or goes out. So both hold 240 + 80 + 80 B where one is in flight and
  // 480 B where two are, recomputed or not, but the first alone 120 + 80 + 160 B.
  test::Toy toy;
  toy.operators.assign(2, {{1, 10}, 40, 10, 40});
  toy.operators.back().output = 0;
  toy.edges = test::chain_edges(2);
  toy.input = 40;
  toy.types = {{440}, {440}};
  toy.devices = {{0}, {1}};
  const test::World world(toy);
  ProblemMemo memo(world.problem);
  std::vector<std::size_t> used;
  for (const double held : {1.0, 1.0, 2.0}) {
    PlanRequest request = world.request();
    request.in_flight = [held](int, int) { return held; };
    request.memo = &memo;
    used.push_back(devices_of(std::get<Plan>(make_plan(test::strategy_row("piper"), request))).size());
  }
  CHECK(used == std::vector<std::size_t>{1, 1, 2});
}

} // namespace
} // namespace stagecraft
