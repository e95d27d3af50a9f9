// From a plan to the task graph of its schedule.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "sim/plan/check_plan.hpp"
#include "sim/schedule/place.hpp"
#include "sim/schedule/task_graph/order_transfers.hpp"
#include "sim/study/simulator.hpp"

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

// The share of a micro-batch's activations that weight gradients need, of the model as a whole, for planners; all of it
// where something is recomputed, as stages then keep less than their activations.
double kept_for_weights(const Problem& problem) {
  Bytes all;
  Bytes needed;
  for (OperatorId op = 0; op < problem.model.size(); ++op) {
    all += problem.stash_bytes(op);
    needed += problem.weight_bytes(op);
  }
  const bool known = problem.model.configurations.empty() && problem.training.recompute.what == Recompute::none;
  return known && needed < all ? needed / all : 1;
}

} // namespace

const ScheduleCounts::Assumed& Simulator::assumed(const ScheduleRow& row, int ranks, int chunks, int micro_batches,
                                                  double kept) {
  const auto [slot, is_new] = counts_.known.try_emplace({&row, ranks, chunks, micro_batches, kept});
  if (is_new) {
    ScheduleResult made = make_schedule(planned_row(row), {ranks, micro_batches, chunks});
    if (const Schedule* schedule = std::get_if<Schedule>(&made)) {
      slot->second = {in_flight(*schedule, kept), schedule->versions};
    }
  }
  return slot->second;
}

std::function<double(int, int)> Simulator::in_flight_of(const ScheduleRow& row, int chunks, const Problem& problem) {
  const double kept = kept_for_weights(problem);
  return [this, &row, chunks, kept, micro_batches = problem.micro_batches](int stage, int stages) {
    const int ranks = std::max(1, stages / chunks);
    // A schedule that cannot run so many stages says so itself, later; memory must not speak first.
    const std::vector<double>& counts = assumed(row, ranks, chunks, micro_batches, kept).in_flight;
    return stage < static_cast<int>(counts.size()) ? counts[stage] : 1.0;
  };
}

int Simulator::versions_of(const ScheduleRow& row, int chunks, int micro_batches) {
  const std::vector<int>& kept = assumed(row, static_cast<int>(devices_.size()), chunks, micro_batches).versions;
  return kept.empty() ? 1 : *std::min_element(kept.begin(), kept.end());
}

// What a schedule that goes by times may know of a plan.
ScheduleRequest Simulator::schedule_request(const Scenario& scenario, const Problem& costs, int chunks,
                                            const Ordered& ordered) {
  const Plan& plan = ordered.plan;
  const auto stages = static_cast<int>(plan.stages.size());
  ScheduleRequest request{.ranks = stages / chunks, .micro_batches = scenario.micro_batches, .chunks = chunks};
  if (scenario.schedule->in_turn) {
    for (const Stage& stage : plan.stages) {
      request.replicas.push_back(static_cast<int>(stage.replicas()));
    }
    return request;
  }
  request.room.assign(request.ranks, std::numeric_limits<double>::infinity());
  for (int s = 0; s < stages; ++s) {
    const int rank = rank_of(s, request.ranks, scenario.schedule->stage_placement);
    StageFigures& figures = request.figures.emplace_back(StageFigures{0, 0, 0, 0});
    Bytes fixed;
    Bytes kept;
    for (const ReplicaCost& replica : ordered.cost.stages[s].replicas) {
      figures.forward = std::max(figures.forward, replica.forward.value);
      figures.backward_input = std::max(figures.backward_input, (replica.backward_input + replica.recompute).value);
      figures.backward_weight = std::max(figures.backward_weight, (replica.backward_weight - replica.overlap).value);
      figures.activation = std::max(figures.activation, replica.memory.per_micro_batch.value);
      kept = std::max(kept,
                      replica.memory.for_weights.value_or(replica.memory.per_micro_batch + replica.memory.workspace));
      fixed = std::max(fixed, replica.memory.fixed(1));
    }
    figures.kept = figures.activation > 0 ? kept.value / figures.activation : 1;
    double& room = request.room[rank];
    if (s < request.ranks) { // the first stage of its rank
      for (const DeviceId device : plan.stages[s].devices) {
        room = std::min(room, study_.platform.type_of(device).memory.value);
      }
    }
    room -= fixed.value;
    if (s > 0) {
      const PathCost path = costs.path(plan.stages[s - 1].devices.front(), plan.stages[s].devices.front());
      const bool apart = plan.stages[s - 1].devices != plan.stages[s].devices;
      request.hops.push_back(apart ? path.latency.value + ordered.cost.cut[s - 1].value * path.seconds_per_byte : 0);
    }
  }
  request.evaluate = [this, &costs, &ordered](const Schedule& schedule) {
    Ordered tried = ordered;
    tried.schedule = schedule;
    add_recompute(tried, costs.training.recompute.rule);
    const auto made = graph_of(costs, tried);
    if (std::holds_alternative<Infeasible>(made)) {
      return std::numeric_limits<double>::infinity();
    }
    const TaskGraph& graph = std::get<TaskGraph>(made);
    const Evaluation found = evaluation_of(graph, metrics_of(graph));
    return found.why_not.empty() ? found.iteration.value : std::numeric_limits<double>::infinity();
  };
  return request;
}

// A schedule by name, or the list schedule where its rules do not fit the plan's shape.
std::variant<Schedule, Infeasible> Simulator::named_schedule(const Scenario& scenario, const Problem& costs,
                                                             const Ordered& ordered) {
  const ScheduleRow& row = *scenario.schedule;
  const auto stages = static_cast<int>(ordered.plan.stages.size());
  const int wanted = chunks_of(row, study_.training.chunks);
  const bool fits = stages % wanted == 0 && is_pipeline(ordered.plan, wanted, row.stage_placement);
  if (!fits && !is_pipeline(ordered.plan, 1)) {
    return make_list_schedule(router_, ordered.plan, ordered.cost, scenario.micro_batches);
  }
  if (!fits && row.chunks > 0) {
    return Infeasible{std::string(row.name) + " wants " + std::to_string(wanted) +
                      " stages on each device; the plan has one"};
  }
  return make_schedule(row, schedule_request(scenario, costs, fits ? wanted : 1, ordered));
}

namespace {

// A given schedule, or why it cannot run.
std::variant<Schedule, Infeasible> check_orders(const Schedule& orders, const Plan& plan, int micro_batches) {
  const std::vector<std::string> defects = schedule_defects(orders);
  if (!defects.empty()) {
    return Infeasible{"the schedule cannot run: " + join(defects, "; ")};
  }
  const auto shape = [](std::size_t stages, int count) {
    return std::to_string(stages) + " stages and " + std::to_string(count) + " micro-batches";
  };
  if (static_cast<std::size_t>(orders.stages) != plan.stages.size() || orders.micro_batches != micro_batches) {
    return Infeasible{"the schedule is for " + shape(orders.stages, orders.micro_batches) + ", the plan has " +
                      shape(plan.stages.size(), micro_batches)};
  }
  return orders;
}

} // namespace

std::optional<Infeasible> Simulator::add_recompute(Ordered& ordered, const RecomputeRule& rule) {
  std::vector<char> recomputing;
  for (const Stage& stage : ordered.plan.stages) {
    recomputing.push_back(stage.recompute != Recompute::none ? 1 : 0);
  }
  bool given = false;
  for (const auto& order : ordered.schedule.orders) {
    for (const Action& action : order) {
      if (action.kind == TaskKind::recompute && recomputing[action.stage] == 0) {
        return Infeasible{"the schedule recomputes stage " + std::to_string(action.stage) +
                          ", the plan does not; allowed: training.recompute, or recompute of the plan's stage"};
      }
      given = given || action.kind == TaskKind::recompute;
    }
  }
  if (!given && std::count(recomputing.begin(), recomputing.end(), 1) > 0) {
    ordered.schedule = stagecraft::add_recompute(std::move(ordered.schedule), recomputing, rule);
  }
  return std::nullopt;
}

std::variant<Simulator::Ordered, Infeasible> Simulator::order(const Scenario& scenario, const Problem& costs,
                                                              const Plan& plan) {
  Ordered ordered{plan, cost_plan(costs, plan), {}, {}};
  auto made = scenario.orders != nullptr ? check_orders(*scenario.orders, plan, scenario.micro_batches)
                                         : named_schedule(scenario, costs, ordered);
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    return *reason;
  }
  ordered.schedule = std::move(std::get<Schedule>(made));
  if (scenario.orders != nullptr || ordered.schedule.name == scenario.schedule->name) {
    auto placed = place(plan, ordered.schedule);
    if (const Infeasible* reason = std::get_if<Infeasible>(&placed)) {
      return *reason;
    }
    ordered.rank_of = std::move(std::get<PlacedPlan>(placed).rank_of);
    if (std::get<PlacedPlan>(placed).plan.stages != plan.stages) {
      ordered.plan = std::move(std::get<PlacedPlan>(placed).plan);
      if (std::string replicated = replicated_indivisible(ordered.plan, *study_.model); !replicated.empty()) {
        return Infeasible{std::move(replicated)};
      }
      ordered.cost = cost_plan(costs, ordered.plan);
    }
  }
  if (auto why = add_recompute(ordered, costs.training.recompute.rule)) {
    return *std::move(why);
  }
  return ordered;
}

TaskGraph Simulator::make_graph(const TaskGraphRequest& request) const {
  TaskGraph graph = make_task_graph(request);
  if (study_.training.ordered_sends) {
    order_transfers(graph);
  }
  return graph;
}

std::variant<TaskGraph, Infeasible> Simulator::graph_of(const Problem& problem, const Ordered& ordered) {
  TaskGraphRequest request{.cost = ordered.cost,
                           .schedule = ordered.schedule,
                           .router = router_,
                           .barrier = study_.training.step == StepMode::barrier,
                           .blocking_sends = study_.training.blocking_sends,
                           .early_recompute = problem.training.recompute.rule.early,
                           .rank_of = ordered.rank_of};
  if (!study_.loader) {
    return make_graph(request);
  }
  Loader loader = *study_.loader;
  if (ordered.plan.default_loader) {
    loader.workers = loader.queue = 1;
    loader.host = HostWait::spin;
  }
  Demand demand{.burst = longest_burst(ordered.schedule)};
  if (!loader.workers) {
    const TaskGraph unfed = make_graph(request);
    const ReplayRequest replay{unfed, study_.platform, iterations(unfed)};
    const Timeline timeline = std::move(replay_analytic({&replay, 1}).front());
    demand.step = measure(unfed, timeline, study_.platform).iteration / ordered.schedule.micro_batches;
  }
  const auto loading = plan_loading(problem, ordered.plan, ordered.cost, loader, demand);
  if (const Infeasible* reason = std::get_if<Infeasible>(&loading)) {
    return *reason;
  }
  request.loading = &std::get<Loading>(loading);
  return make_graph(request);
}

std::variant<TaskGraph, Infeasible> Simulator::graph_of(const Plan& plan, const ScheduleRow& schedule,
                                                        int micro_batches, int recompute) {
  const Scenario scenario{.plan = &plan, .schedule = &schedule, .micro_batches = micro_batches, .recompute = recompute};
  const Problem& costs = problem(micro_batches, recompute);
  if (std::string lacks = missing_kernel(costs, plan); !lacks.empty()) {
    return Infeasible{std::move(lacks)};
  }
  const auto ordered = order(scenario, costs, plan);
  if (const Infeasible* reason = std::get_if<Infeasible>(&ordered)) {
    return *reason;
  }
  return graph_of(costs, std::get<Ordered>(ordered));
}

} // namespace stagecraft
