// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare.hpp"

#include <algorithm>
#include <numeric>

namespace stagecraft {

ComparisonResult compare(const Study& study, Simulator& simulator, const ProgressCall& progress) {
  std::vector<Scenario> scenarios;
  for (const StrategyRow* strategy : study.strategies) {
    for (const ScheduleRow* schedule : study.schedules) {
      for (const int count : study.training.micro_batches) {
        scenarios.push_back({.strategy = strategy, .schedule = schedule, .micro_batches = count});
      }
    }
  }
  ComparisonResult result;
  result.prepared = simulator.prepare(scenarios, progress);
  simulator.replay(result.prepared);
  std::vector<std::size_t> order(scenarios.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Run& first = result.prepared[a].run;
    const Run& second = result.prepared[b].run;
    if (first.feasible != second.feasible) {
      return first.feasible;
    }
    return first.feasible && first.metrics.iteration < second.metrics.iteration;
  });
  result.comparison.model = study.model->name;
  result.comparison.platform = study.platform.name;
  result.comparison.global_batch = study.training.global_batch;
  for (const std::size_t at : order) {
    const Prepared& prepared = result.prepared[at];
    result.comparison.runs.push_back(prepared.run);
    result.of_run.push_back(prepared.twin >= 0 ? prepared.twin : at);
  }
  result.comparison.verdict = make_verdict(result.comparison);
  return result;
}

} // namespace stagecraft
