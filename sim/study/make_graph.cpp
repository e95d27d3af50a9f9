// SPDX-License-Identifier: Apache-2.0
#include "sim/study/make_graph.hpp"

#include <algorithm>

#include "sim/base/physical_ranges.hpp"
#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/study/measure_graph.hpp"

namespace stagecraft {
namespace {

// The largest number of forwards of the first stage in a row.
int longest_burst(const Schedule& schedule) {
  int longest = 1;
  for (const auto& order : schedule.orders) {
    int burst = 0;
    for (const Action& action : order) {
      burst = action.stage == 0 && action.kind == TaskKind::forward ? burst + 1 : 0;
      longest = std::max(longest, burst);
    }
  }
  return longest;
}

// The task graph, with its transfers ordered where the study says so.
TaskGraph make_graph(const Study& study, const TaskGraphRequest& request) {
  TaskGraph graph = make_task_graph(request);
  if (study.training.ordered_sends) {
    order_transfers(graph);
  }
  return graph;
}

// What the first stage asks of its loader: how many batches in a burst and, where the study leaves the number of
// workers open, the time between batches.
Demand demand_of(const Study& study, const TaskGraphRequest& request, const Loader& loader) {
  Demand demand{.burst = longest_burst(request.schedule)};
  if (!loader.workers) {
    demand.step = measure_analytic(study, make_graph(study, request)).iteration / request.schedule.micro_batches;
  }
  return demand;
}

// The graph, or why no engine can replay it: SimGrid counts a transfer's bytes in 64 bits.
std::variant<TaskGraph, Infeasible> make_replayable(const Study& study, const TaskGraphRequest& request) {
  TaskGraph graph = make_graph(study, request);
  for (const Work& work : graph.works) {
    if (work.bytes > physical::kSize.high) {
      return Infeasible{"stage " + std::to_string(work.stage) + " sends " + to_text(Bytes{work.bytes}) +
                        " at once, more than a replay holds; allowed: at most 1e18 B"};
    }
  }
  return graph;
}

} // namespace

std::variant<TaskGraph, Infeasible> graph_of(StudyCosts& costs, const Problem& problem, const OrderedPlan& ordered) {
  const Study& study = costs.study();
  TaskGraphRequest request{.cost = ordered.cost,
                           .schedule = ordered.schedule,
                           .router = costs.router(),
                           .barrier = study.training.step == StepMode::barrier,
                           .blocking_sends = study.training.blocking_sends,
                           .early_recompute = problem.training.recompute.rule.early,
                           .rank_of = ordered.rank_of};
  if (!study.loader) {
    return make_replayable(study, request);
  }
  Loader loader = *study.loader;
  if (ordered.plan.default_loader) {
    loader.workers = loader.queue = 1;
    loader.host = HostWait::spin;
  }
  const auto loading = plan_loading(problem, ordered.plan, ordered.cost, loader, demand_of(study, request, loader));
  if (const Infeasible* reason = std::get_if<Infeasible>(&loading)) {
    return *reason;
  }
  request.loading = &std::get<Loading>(loading);
  return make_replayable(study, request);
}

bool is_replayable(const Study& study, int micro_batches) {
  constexpr double kMostActions = 2e7; // their task graph takes about 5 GB
  constexpr double kIterations = 16;   // assumed for a replay with a loader
  const double actions = static_cast<double>(micro_batches) * static_cast<double>(study.platform.devices.size());
  return (study.loader ? kIterations : 1) * actions <= kMostActions;
}

} // namespace stagecraft
