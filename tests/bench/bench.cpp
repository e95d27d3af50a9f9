// Work for the instruction counter.
//   bench ENGINE STAGES MICRO_BATCHES     ENGINE: analytic, simgrid, or list (analytic after a list schedule)
// Makes the schedule, task graph, replay and metrics of a pipeline with uneven stages; prints the number of tasks
// executed. tests/bench/run takes differences of two sizes.
//   bench STRATEGY DEVICES OPERATORS      DEVICES: N, or N+M, of which M are half as fast
// Plans an uneven chain once; prints its number of stages and the milliseconds of processor time.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>

#include "sim/platform/load_platform.hpp"
#include "sim/replay/replay.hpp"
#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/strategy/strategy.hpp"
#include "sim/timeline/metrics.hpp"

namespace {

using namespace stagecraft;

// Times differ by up to a thousandth, so that no two events coincide by chance.
PlanCost uneven_pipeline(int stages) {
  PlanCost cost;
  for (int s = 0; s < stages; ++s) {
    const double time = 1e-3 * (1 + 1e-3 * ((s * 37) % 101) / 101.0);
    ReplicaCost replica{.device = s, .forward = Seconds{time}, .backward_input = Seconds{2 * time}};
    replica.memory.per_micro_batch = Bytes{1e6};
    cost.stages.push_back({.replicas = {replica}});
    if (s > 0) {
      cost.edges.push_back({s - 1, s, Bytes{1e6 + s}});
    }
  }
  return cost;
}

Plan chain_plan(int stages) {
  Plan plan;
  for (int s = 0; s < stages; ++s) {
    plan.stages.push_back({.operators = {s}, .devices = {s}});
  }
  return plan;
}

struct Planned {
  std::size_t stages;
  double milliseconds;
};

// A star of equal devices, the last `slow` of them half as fast.
Platform star(int devices, int slow) {
  DeviceType type;
  type.name = "bench";
  type.memory = Bytes{std::numeric_limits<double>::infinity()};
  type.memory_bandwidth = BytesPerSecond{1e12};
  for (auto& rates : type.rates) {
    rates.fill(FlopsPerSecond{1e12});
  }
  type.peak.fill(FlopsPerSecond{1e12});
  Platform platform = make_star_platform(type, devices, BytesPerSecond{1e9}, Seconds{5e-6});
  type.name = "slow";
  type.memory_bandwidth = BytesPerSecond{5e11};
  for (auto& rates : type.rates) {
    rates.fill(FlopsPerSecond{5e11});
  }
  type.peak.fill(FlopsPerSecond{5e11});
  platform.types.push_back(type);
  for (int device = devices - slow; device < devices; ++device) {
    platform.devices[device].type = static_cast<int>(platform.types.size()) - 1;
  }
  return platform;
}

// A chain of operators with times and tensors that differ.
Planned plan_chain(const std::string& strategy, int devices, int slow, int operators) {
  std::vector<Operator> chain(operators);
  std::vector<std::pair<int, int>> edges;
  Profile profile{.samples = 1};
  for (int op = 0; op < operators; ++op) {
    chain[op].name = std::to_string(op);
    chain[op].parameters = 1e5 + 1e4 * ((op * 53) % 97);
    chain[op].forward.flops = Flops{1e9 * (1 + (op * 29) % 13)};
    chain[op].output_elements = 1e4 + 100 * ((op * 37) % 101);
    profile.times.push_back({Seconds{1e-3 * (1 + (op * 29) % 13)}, Seconds{1e-3 * (2 + (op * 31) % 17)}});
    if (op > 0) {
      edges.emplace_back(op - 1, op);
    }
  }
  const ModelGraph model = make_graph("chain", chain, edges, {profile}, {});
  const Platform platform = star(devices, slow);
  const auto cost = make_profiled({.model = model});
  const Training training;
  Router router(platform);
  const Problem problem =
      make_problem(model, platform, *std::get<std::unique_ptr<CostModel>>(cost), training, router, 1);
  PlanRequest request{.problem = problem, .devices = {}, .in_flight = [](int, int) { return 1.0; }};
  for (DeviceId device = 0; device < devices; ++device) {
    request.devices.push_back(device);
  }
  const std::clock_t start = std::clock();
  const PlanResult plan = make_plan(find_by_name(strategies(), strategy, "strategy", {}), request);
  constexpr double kMilli = 1e3;
  return {std::get<Plan>(plan).stages.size(), kMilli * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC};
}

} // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr,
                 "usage: bench analytic|simgrid|list STAGES MICRO_BATCHES, or bench STRATEGY DEVICES OPERATORS\n");
    return 2;
  }
  const std::string engine = arguments[1];
  const int stages = std::atoi(arguments[2]);
  const int micro_batches = std::atoi(arguments[3]);
  if (engine != "analytic" && engine != "simgrid" && engine != "list") {
    const std::string devices = arguments[2];
    const std::size_t plus = devices.find('+');
    const int slow = plus == std::string::npos ? 0 : std::atoi(devices.c_str() + plus + 1);
    const Planned planned = plan_chain(engine, stages + slow, slow, micro_batches);
    std::printf("%zu %.2f\n", planned.stages, planned.milliseconds);
    return 0;
  }
  DeviceType type;
  type.name = "bench";
  const Platform platform = make_star_platform(type, stages, BytesPerSecond{1e10}, Seconds{5e-6});
  Router router(platform);
  const PlanCost cost = uneven_pipeline(stages);
  const Plan plan = chain_plan(stages);
  const ScheduleRow& row = find_by_name(schedules(), "1f1b", "schedule", {});
  const Schedule schedule = engine == "list" ? make_list_schedule(router, plan, cost, micro_batches)
                                             : std::get<Schedule>(make_schedule(row, {stages, micro_batches, 1}));
  TaskGraph graph = make_task_graph({.cost = cost, .schedule = schedule, .router = router});
  order_transfers(graph);
  const ReplayRequest request{graph, platform};
  const auto replay = engine == "simgrid" ? replay_simgrid : replay_analytic;
  const Metrics metrics = measure(graph, replay(std::span(&request, 1)).front(), platform);
  std::printf("%ld %.9f\n", metrics.tasks, metrics.iteration.value);
  return 0;
}
