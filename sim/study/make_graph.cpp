// SPDX-License-Identifier: Apache-2.0
#include "sim/study/make_graph.hpp"

#include <algorithm>

#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/study/measure_graph.hpp"

namespace stagecraft {
namespace {

// Most forwards of the first stage that follow one another.
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

// Its transfers ordered where the study says so.
TaskGraph make_graph(const Study& study, const TaskGraphRequest& request) {
  TaskGraph graph = make_task_graph(request);
  if (study.training.ordered_sends) {
    order_transfers(graph);
  }
  return graph;
}

// What the first stage asks of its loader: batches in a burst, and how often where the loader's size is to be found.
Demand demand_of(const Study& study, const TaskGraphRequest& request, const Loader& loader) {
  Demand demand{.burst = longest_burst(request.schedule)};
  if (!loader.workers) {
    const TaskGraph unfed = make_graph(study, request);
    const ReplayRequest replay{unfed, study.platform, iterations_of(study, unfed)};
    const Timeline timeline = std::move(replay_analytic({&replay, 1}).front());
    demand.step = measure(unfed, timeline, study.platform).iteration / request.schedule.micro_batches;
  }
  return demand;
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
    return make_graph(study, request);
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
  return make_graph(study, request);
}

bool is_replayable(const Study& study, int micro_batches) {
  constexpr double kMostActions = 2e7; // their task graph fills some five gigabytes
  constexpr double kIterations = 16;   // are replayed with a loader
  const double actions = static_cast<double>(micro_batches) * static_cast<double>(study.platform.devices.size());
  return (study.loader ? kIterations : 1) * actions <= kMostActions;
}

} // namespace stagecraft
