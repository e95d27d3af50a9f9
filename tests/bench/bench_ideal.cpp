// Work for the clock: the exact max-load planner on graphs of parallel branches.
//   bench_ideal BRANCHES LENGTH
// There are (LENGTH + 1)^BRANCHES + 2 ideals, six devices of one type, and a slow one of another.
// Prints ideals, processor seconds of `ideal` and `ideal-linear`, their max-loads, and the process' largest memory.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "sim/base/named_table.hpp"
#include "sim/platform/load_platform.hpp"
#include "sim/strategy/strategy.hpp"

namespace {

using namespace stagecraft;

// A source, branches that differ by up to half, a sink.
ModelGraph branches_of(int branches, int length) {
  std::vector<Operator> operators(branches * length + 2);
  std::vector<std::pair<int, int>> edges;
  Profile fast{"fast", 1, Precision::fp32, {}};
  Profile slow{"slow", 1, Precision::fp32, {}};
  const int sink = branches * length + 1;
  for (int op = 0; op <= sink; ++op) {
    operators[op].name = std::to_string(op);
    operators[op].output_elements = 1e5 * (1 + op % 7);
    const Seconds time{1e-3 * (1 + (op * 37) % 101 / 202.0)};
    fast.times.push_back({time, 2 * time});
    slow.times.push_back({10 * time, 20 * time});
  }
  for (int branch = 0; branch < branches; ++branch) {
    const int first = 1 + branch * length;
    edges.emplace_back(0, first);
    for (int op = first; op + 1 < first + length; ++op) {
      edges.emplace_back(op, op + 1);
    }
    edges.emplace_back(first + length - 1, sink);
  }
  return make_graph("branches", operators, edges, {fast, slow}, {"bench", 0, 0});
}

DeviceType type_called(const char* name) {
  DeviceType type;
  type.name = name;
  for (auto& row : type.rates) {
    row.fill(FlopsPerSecond{1});
  }
  type.memory = Bytes{1e12};
  return type;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

} // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: bench_ideal BRANCHES LENGTH\n");
    return 2;
  }
  const int branches = std::atoi(arguments[1]);
  const int length = std::atoi(arguments[2]);
  const ModelGraph model = branches_of(branches, length);
  const Platform platform = make_star_platform(
      {{type_called("fast"), 6, BytesPerSecond{2e9}}, {type_called("slow"), 1, BytesPerSecond{1e15}}}, Seconds{0});
  const auto cost = std::get<std::unique_ptr<CostModel>>(make_profiled({.model = model}));
  const Training training;
  Router router(platform);
  const Problem problem = make_problem(model, platform, *cost, training, router, 1);
  PlanRequest request{.problem = problem, .devices = {0, 1, 2, 3, 4, 5, 6}};
  request.in_flight = [](int, int) { return 1.0; };
  std::printf("%.0f ideals", std::pow(length + 1, branches) + 2);
  for (const char* name : {"ideal", "ideal-linear"}) {
    const double start = processor_seconds();
    const PlanResult result = find_by_name(strategies(), name, "strategy", {}).split(request);
    const Plan* plan = std::get_if<Plan>(&result);
    std::printf(", %.2f s (%.6g ms)", processor_seconds() - start,
                plan != nullptr ? plan->objective->value.value * 1e3 : -1);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(", %ld MiB\n", usage.ru_maxrss / 1024);
  return 0;
}
