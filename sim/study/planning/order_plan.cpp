// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/order_plan.hpp"

#include <algorithm>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/likeness/fold_plan.hpp"
#include "sim/plan/stage_cost/known_stages.hpp"
#include "sim/replay/what_if/lockstep.hpp"
#include "sim/schedule/place.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/study/measure/race.hpp"

namespace stagecraft {
namespace {

// Adds the recompute (R) that the plan's stages ask for, by the rule, unless the order has its own; or says why the
// order contradicts the plan.
std::optional<Infeasible> add_recompute(OrderedPlan& ordered, const RecomputeRule& rule) {
  std::vector<char> recomputing;
  for (const Stage& stage : ordered.plan.stages) {
    recomputing.push_back(stage.recompute != Recompute::none ? 1 : 0);
  }
  const auto is_recompute = [](const Action& action) { return action.kind == TaskKind::recompute; };
  bool given = false;
  for (const auto& order : ordered.schedule.orders) {
    for (auto at = std::find_if(order.begin(), order.end(), is_recompute); at != order.end();
         at = std::find_if(at + 1, order.end(), is_recompute)) {
      if (recomputing[at->stage] == 0) {
        return Infeasible{"the schedule recomputes stage " + std::to_string(at->stage) +
                          ", the plan does not; allowed: training.recompute, or recompute of the plan's stage"};
      }
      given = true;
    }
  }
  if (!given && std::count(recomputing.begin(), recomputing.end(), 1) > 0) {
    ordered.schedule = stagecraft::add_recompute(std::move(ordered.schedule), recomputing, rule);
  }
  return std::nullopt;
}

// A stage's seconds per micro-batch on its slowest device, and its activations on its fullest.
StageFigures figures_of(const StageCost& stage) {
  StageFigures figures{0, 0, 0, 0};
  Bytes kept;
  for (const ReplicaCost& replica : stage.replicas) {
    figures.forward = std::max(figures.forward, replica.forward.value);
    figures.backward_input = std::max(figures.backward_input, (replica.backward_input + replica.recompute).value);
    figures.backward_weight = std::max(figures.backward_weight, (replica.backward_weight - replica.overlap).value);
    figures.activation = std::max(figures.activation, replica.memory.per_micro_batch.value);
    kept =
        std::max(kept, replica.memory.for_weights.value_or(replica.memory.per_micro_batch + replica.memory.workspace));
  }
  figures.kept = figures.activation > 0 ? kept.value / figures.activation : 1;
  return figures;
}

// Bytes for activations on each rank: the memory of the smallest device of its first stage, less what all its stages
// keep.
std::vector<double> room_of(const OrderedPlan& ordered, const Platform& platform, int ranks, StagePlacement placement) {
  std::vector<double> room(ranks, kInfinity);
  for (int s = 0; s < static_cast<int>(ordered.plan.stages.size()); ++s) {
    double& own = room[rank_of(s, ranks, placement)];
    if (s < ranks) { // the first stage of its rank
      for (const DeviceId device : ordered.plan.stages[s].devices) {
        own = std::min(own, platform.type_of(device).memory.value);
      }
    }
    Bytes fixed;
    for (const ReplicaCost& replica : ordered.cost.stages[s].replicas) {
      fixed = std::max(fixed, replica.memory.fixed(1));
    }
    own -= fixed.value;
  }
  return room;
}

// Seconds that a micro-batch's tensors take from each stage to the next.
std::vector<double> hops_of(const OrderedPlan& ordered, const Problem& problem) {
  const std::vector<Stage>& stages = ordered.plan.stages;
  std::vector<double> hops;
  for (std::size_t s = 1; s < stages.size(); ++s) {
    const PathCost path = problem.path(stages[s - 1].devices.front(), stages[s].devices.front());
    const bool apart = stages[s - 1].devices != stages[s].devices;
    hops.push_back(apart ? path.latency.value + ordered.cost.cut[s - 1].value * path.seconds_per_byte : 0);
  }
  return hops;
}

// Seconds of an iteration in some orders of a plan, by the study's engine; infinite where one cannot run, and where it
// is surely slower than one asked before. Equal orders are replayed once.
class OrdersOfPlan {
public:
  OrdersOfPlan(StudyCosts& costs, const Problem& problem, const OrderedPlan& ordered)
      : costs_(costs), problem_(problem), ordered_(ordered), race_(costs.study()) {}

  double seconds_in(const Schedule& schedule) {
    const auto known =
        std::find_if(known_.begin(), known_.end(), [&](const auto& one) { return same_work(one.first, schedule); });
    return known != known_.end() ? known->second : known_.emplace_back(schedule, replayed(schedule)).second;
  }

private:
  double replayed(const Schedule& schedule) {
    OrderedPlan ordered = ordered_;
    ordered.schedule = schedule;
    add_recompute(ordered, problem_.training.recompute.rule);
    const auto made = graph_of(costs_, problem_, ordered, {.exchanges = ExchangeTasks::none});
    const TaskGraph* graph = std::get_if<TaskGraph>(&made);
    return graph != nullptr ? race_.seconds_of(*graph) : kInfinity;
  }

  StudyCosts& costs_;
  const Problem& problem_;
  const OrderedPlan& ordered_;
  Race race_;
  std::vector<std::pair<Schedule, double>> known_;
};

// What a schedule that depends on times may know of a plan. The arguments must outlive it.
ScheduleRequest schedule_request(StudyCosts& costs, const ScheduleRow& row, const Problem& problem, int chunks,
                                 const OrderedPlan& ordered) {
  const auto stages = static_cast<int>(ordered.plan.stages.size());
  ScheduleRequest request = request_by_numbers(problem, stages / chunks, chunks);
  if (row.in_turn) {
    for (const Stage& stage : ordered.plan.stages) {
      request.replicas.push_back(static_cast<int>(stage.replicas()));
    }
    return request;
  }
  for (const StageCost& stage : ordered.cost.stages) {
    request.figures.push_back(figures_of(stage));
  }
  request.room = room_of(ordered, costs.study().platform, request.ranks, row.stage_placement);
  request.hops = hops_of(ordered, problem);
  request.evaluate = [orders = OrdersOfPlan(costs, problem, ordered)](const Schedule& schedule) mutable {
    return orders.seconds_in(schedule);
  };
  return request;
}

// A schedule by name, or the list schedule where its rules do not fit the plan's shape. Of a search's plans,
// `one_of_many`, each is asked about once.
std::variant<Schedule, Infeasible> named_schedule(StudyCosts& costs, const ScheduleRow& row, const Problem& problem,
                                                  const OrderedPlan& ordered, bool one_of_many) {
  const auto stages = static_cast<int>(ordered.plan.stages.size());
  const int wanted = chunks_of(row, costs.study().training.chunks);
  const bool fits = stages % wanted == 0 && is_pipeline(ordered.plan, wanted, row.stage_placement);
  if (!fits && !is_pipeline(ordered.plan, 1)) {
    if (problem.training.pipeline_fills > 1) {
      return Infeasible{
          "its stages do not follow each other from device to device, and 'pipeline_fills' is of pipelines"};
    }
    return make_list_schedule(costs.router(), ordered.plan, ordered.cost, problem.micro_batches);
  }
  if (!fits && row.chunks > 0) {
    return Infeasible{std::string(row.name) + " wants " + std::to_string(wanted) +
                      " stages on each device; the plan has one"};
  }
  const int chunks = fits ? wanted : 1;
  if (!row.timed && !row.in_turn) {
    return costs.schedules().find_or_make(row, request_by_numbers(problem, stages / chunks, chunks));
  }
  const auto make = [&] { return make_schedule(row, schedule_request(costs, row, problem, chunks, ordered)); };
  return one_of_many ? make() : costs.schedules().find_or_make(row, problem, ordered.plan.stages, make);
}

// Whether a schedule is made without the costs of the plan.
bool follows_numbers(const StudyCosts& costs, const Scenario& scenario, const Plan& plan) {
  if (scenario.orders != nullptr) {
    return true;
  }
  const ScheduleRow& row = *scenario.schedule;
  const int chunks = chunks_of(row, costs.study().training.chunks);
  const bool fits =
      static_cast<int>(plan.stages.size()) % chunks == 0 && is_pipeline(plan, chunks, row.stage_placement);
  return !row.timed && !row.in_turn && (fits || is_pipeline(plan, 1));
}

// Costs of what is simulated, if those are fewer: not where iterations overlap, devices follow orders of their own, or
// micro-batches come to replicas of another turn from stage to stage.
enum class Folded { no, always, in_lockstep }; // the last: unless replicas drift apart
Folded fold(StudyCosts& costs, const Problem& problem, OrderedPlan& ordered, bool keeps_turns) {
  const Schedule& schedule = ordered.schedule;
  if (!schedule.flushes || schedule.steps_each_micro_batch || ordered.rank_of.empty() || !keeps_turns) {
    return Folded::no;
  }
  FoldRequest request{.problem = problem,
                      .plan = ordered.plan,
                      .clips_gradients = problem.training.clip_gradients,
                      .shares_links = costs.study().engine->replay != replay_analytic};
  std::optional<PlanCost> folded = fold_plan(request);
  // On few devices it would save less than it takes to find out whether replicas may drift.
  constexpr std::size_t kMany = 64;
  const bool in_lockstep = !folded && request.shares_links && problem.platform.devices.size() > kMany;
  if (in_lockstep) {
    request.shares_links = false;
    folded = fold_plan(request);
  }
  if (!folded) {
    return Folded::no;
  }
  ordered.cost = *std::move(folded);
  return in_lockstep ? Folded::in_lockstep : Folded::always;
}

// Whether replicas of a folded plan may gain by drifting apart, which folded ones cannot.
bool may_drift(StudyCosts& costs, const Problem& problem, const OrderedPlan& ordered) {
  const auto made = graph_of(costs, problem, ordered);
  const TaskGraph* const graph = std::get_if<TaskGraph>(&made);
  if (graph == nullptr) {
    return true;
  }
  const Study& study = costs.study();
  const ReplayRequest request{*graph, study.platform, iterations_of(study, *graph)};
  const Timeline exact = replay_steady(Replayer(study.engine->replay).for_many(), {&request, 1}).front();
  return may_gain(measure(*graph, exact, study.platform).iteration.value,
                  measure_analytic(study, *graph).iteration.value);
}

// A given schedule, or why it cannot run.
std::variant<Schedule, Infeasible> check_orders(const Schedule& orders, const Plan& plan, const Problem& problem) {
  const int micro_batches = problem.micro_batches;
  if (problem.training.pipeline_fills > 1) {
    return Infeasible{"the schedule is of a whole iteration; allowed: 'pipeline_fills' 1"};
  }
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

bool same_work(const Schedule& one, const Schedule& other) {
  return one.orders == other.orders && one.splits_backward == other.splits_backward && one.flushes == other.flushes &&
         one.steps_each_micro_batch == other.steps_each_micro_batch && one.predicts_weights == other.predicts_weights &&
         one.pairs_by_layers == other.pairs_by_layers && one.versions == other.versions;
}

std::variant<OrderedPlan, Infeasible> order_plan(StudyCosts& costs, const Scenario& scenario, const Problem& problem,
                                                 const Plan& plan, Folding folding, KnownStages* known) {
  const bool first_costs = !follows_numbers(costs, scenario, plan);
  OrderedPlan ordered{plan, first_costs ? cost_plan(problem, plan, known) : PlanCost{}, {}, {}};
  auto made = scenario.orders != nullptr
                  ? check_orders(*scenario.orders, plan, problem)
                  : named_schedule(costs, *scenario.schedule, problem, ordered, known != nullptr);
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    return *reason;
  }
  ordered.schedule = std::move(std::get<Schedule>(made));
  bool keeps_turns = true;
  if (scenario.orders != nullptr || ordered.schedule.name == scenario.schedule->name) {
    auto placed = place(plan, ordered.schedule);
    if (const Infeasible* reason = std::get_if<Infeasible>(&placed)) {
      return *reason;
    }
    ordered.rank_of = std::move(std::get<PlacedPlan>(placed).rank_of);
    keeps_turns = std::get<PlacedPlan>(placed).keeps_turns;
    if (std::get<PlacedPlan>(placed).plan.stages != plan.stages) {
      ordered.plan = std::move(std::get<PlacedPlan>(placed).plan);
      if (std::string replicated = replicated_indivisible(ordered.plan, *costs.study().model); !replicated.empty()) {
        return Infeasible{std::move(replicated)};
      }
      if (std::string lacks = missing_kernel(problem, ordered.plan); !lacks.empty()) {
        return Infeasible{std::move(lacks)};
      }
      ordered.cost = first_costs ? cost_plan(problem, ordered.plan, known) : PlanCost{};
    }
  }
  const Folded folded = folding == Folding::on ? fold(costs, problem, ordered, keeps_turns) : Folded::no;
  if (ordered.cost.stages.empty()) {
    ordered.cost = cost_plan(problem, ordered.plan, known);
  }
  if (auto why = add_recompute(ordered, problem.training.recompute.rule)) {
    return *std::move(why);
  }
  if (folded == Folded::in_lockstep && may_drift(costs, problem, ordered)) {
    ordered.cost = cost_plan(problem, ordered.plan, known);
  }
  return ordered;
}

} // namespace stagecraft
