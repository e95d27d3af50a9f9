// SPDX-License-Identifier: Apache-2.0
#include "sim/study/planning/plan_scenario.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/improves.hpp"
#include "sim/plan/estimate/check_plan.hpp"
#include "sim/plan/estimate/least_iteration.hpp"
#include "sim/plan/stage_cost/known_stages.hpp"
#include "sim/strategy/plan_in_groups.hpp"
#include "sim/study/planning/evaluate.hpp"
#include "sim/study/planning/least_replay.hpp"
#include "sim/study/planning/make_graph.hpp"

namespace stagecraft {
namespace {

// Stages per rank of a given schedule; 1 where the ranks do not divide the stages, which the schedule's check reports
// later.
int chunks_of(const Schedule& orders) {
  const int ranks = static_cast<int>(orders.orders.size());
  return orders.stages % ranks == 0 ? orders.stages / ranks : 1;
}

// Where a given schedule has its stages: in a V if it follows no other rule.
StagePlacement placement_of(const Schedule& orders) {
  const int ranks = static_cast<int>(orders.orders.size());
  const auto follows = [&](StagePlacement placement) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<Action>& order = orders.orders[rank];
      if (!std::all_of(order.begin(), order.end(), [&](const Action& action) {
            return stagecraft::rank_of(action.stage, ranks, placement) == rank;
          })) {
        return false;
      }
    }
    return true;
  };
  const bool is_v = !follows(StagePlacement::interleaved) && follows(StagePlacement::v_shaped);
  return is_v ? StagePlacement::v_shaped : StagePlacement::interleaved;
}

// What each stage has, where the study says so.
const PipelineLayout* given_layers(const Training& training) {
  return training.parallel && training.parallel->layers ? &*training.parallel->layers : nullptr;
}

// What the planner is told of the schedule.
void tell_schedule(StudyMemo& memo, const Scenario& scenario, const Problem& problem, PlanRequest& request) {
  const StrategyRow* strategy = scenario.strategy;
  const bool in_chunks = strategy == nullptr || strategy->pipeline || strategy->reference;
  if (scenario.orders != nullptr) {
    request.chunks = in_chunks ? chunks_of(*scenario.orders) : 1;
    request.stage_placement = placement_of(*scenario.orders);
    request.in_flight = in_flight_of(*scenario.orders, problem);
    return;
  }
  const ScheduleRow& schedule = *scenario.schedule;
  request.chunks = in_chunks ? chunks_of(schedule, memo.costs.study().training.chunks) : 1;
  request.stage_placement = request.chunks > 1 ? schedule.stage_placement : StagePlacement::interleaved; // then alike
  request.in_flight = in_flight_of(memo.counts, schedule, request.chunks, problem);
  request.versions = versions_of(memo.counts, schedule, pipeline_ranks(problem.training, request.devices.size()),
                                 request.chunks, problem);
}

// The schedule whose replays a planner may ask for.
const ScheduleRow* assumed_schedule(const Scenario& scenario) {
  return scenario.schedule != nullptr ? &planned_row(*scenario.schedule) : nullptr;
}

// What is known of how plans of so many stages are run.
LeastPace least_pace(const Study& study, const Training& training, const ScheduleRow& row, int stages,
                     int micro_batches) {
  constexpr int kAnyChunks = 2; // no matter how many: schedules with several flush
  const ScheduleResult made = make_schedule(planned_row(row), {stages, micro_batches, kAnyChunks});
  const Schedule* schedule = std::get_if<Schedule>(&made);
  const bool flushes = schedule != nullptr && schedule->flushes && !schedule->steps_each_micro_batch;
  const bool waits = training.step == StepMode::barrier && !study.loader && !training.sharding.on() &&
                     !training.offload.on(); // for all of the iteration before
  return {.from_empty = flushes && waits,
          .splits_backward = row.splits_backward || row.timed,
          .one_home_for_each = !row.bidirectional && !row.in_turn};
}

// What replays under a scenario's schedule take at least. Remembers what plans of so many stages have in common.
class LeastUnder {
public:
  LeastUnder(StudyCosts& costs, const Scenario& scenario) : costs_(&costs), scenario_(scenario) {}

  double operator()(const Plan& plan) {
    const Problem& problem = costs_->problem(scenario_.micro_batches, scenario_.recompute);
    const auto stages = static_cast<int>(plan.stages.size());
    if (stages_ != stages) {
      stages_ = stages;
      pace_ = least_pace(costs_->study(), problem.training, *scenario_.schedule, stages, scenario_.micro_batches);
      schedule_ = find_schedule(problem);
    }
    const double least = least_iteration(problem, plan, pace_);
    if (schedule_ && is_pipeline(plan, chunks(), scenario_.schedule->stage_placement)) {
      return std::max(least, least_replay(problem, plan, *schedule_));
    }
    const bool passes = pace_.from_empty && pace_.one_home_for_each;
    return passes ? std::max(least, least_passage(problem, plan, pace_.splits_backward)) : least;
  }

private:
  int chunks() const { return chunks_of(*scenario_.schedule, costs_->study().training.chunks); }

  // Where its orders follow from numbers alone, and start from empty.
  std::optional<Schedule> find_schedule(const Problem& problem) {
    const ScheduleRow& row = *scenario_.schedule;
    if (row.timed || row.in_turn || !pace_.from_empty || stages_ % chunks() != 0) {
      return std::nullopt;
    }
    ScheduleResult made =
        costs_->schedules().find_or_make(row, request_by_numbers(problem, stages_ / chunks(), chunks()));
    Schedule* const schedule = std::get_if<Schedule>(&made);
    return schedule != nullptr ? std::optional(std::move(*schedule)) : std::nullopt;
  }

  StudyCosts* costs_;
  Scenario scenario_;
  int stages_ = -1;
  LeastPace pace_;
  std::optional<Schedule> schedule_;
};

PlanResult check_given(StudyCosts& costs, const Scenario& scenario) {
  const Study& study = costs.study();
  const auto defects = plan_defects(*scenario.plan, *study.model, study.platform);
  if (!defects.empty()) {
    constexpr std::size_t kMostTold = 3; // `stagecraft check` lists all
    const std::vector<std::string> told(defects.begin(), defects.begin() + std::min(defects.size(), kMostTold));
    const std::size_t rest = defects.size() - told.size();
    return Infeasible{join(told, "; ") + (rest > 0 ? "; and " + std::to_string(rest) + " more defects" : "")};
  }
  if (const std::string lacks =
          missing_kernel(costs.problem(scenario.micro_batches, scenario.recompute), *scenario.plan);
      !lacks.empty()) {
    return Infeasible{lacks};
  }
  return *scenario.plan;
}

Planned plan_by_strategy(StudyMemo& memo, const Scenario& scenario) {
  const StrategyRow& strategy = *scenario.strategy;
  Planned planned = plan_of_strategy(memo, scenario);
  const Training& training = memo.costs.study().training;
  const std::size_t devices = memo.costs.devices().size();
  if (scenario.schedule != nullptr && strategy.pipeline && std::holds_alternative<Infeasible>(planned.result) &&
      (!training.parallel || std::holds_alternative<Mesh>(mesh_of(*training.parallel, static_cast<int>(devices))))) {
    const int ranks = pipeline_ranks(training, devices);
    const int chunks = chunks_of(*scenario.schedule, training.chunks);
    const Problem& problem = memo.costs.problem(scenario.micro_batches, scenario.recompute);
    const ScheduleResult made = make_schedule(*scenario.schedule, request_by_numbers(problem, ranks, chunks));
    if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
      planned.result = *reason; // more memory would not help
    }
  }
  return planned;
}

} // namespace

PlanRequest plan_request(StudyMemo& memo, const Scenario& scenario, const Problem& problem) {
  StudyCosts& costs = memo.costs;
  const Study& study = costs.study();
  PlanRequest request{.problem = problem,
                      .devices = costs.devices(),
                      .layers = given_layers(study.training),
                      .seed = scenario.seed != 0 ? scenario.seed : study.seed,
                      .drawn = scenario.seed != 0,
                      .balance = study.balance};
  if (!memo.problem.is_of(problem)) {
    memo.problem = ProblemMemo(problem);
  }
  request.memo = &memo.problem;
  tell_schedule(memo, scenario, problem, request);
  if (&problem == &costs.believed(scenario.micro_batches, scenario.recompute)) {
    Scenario assumed = scenario;
    assumed.schedule = assumed_schedule(scenario);
    request.evaluate = [&costs, assumed, known = kept_for<KnownStages>(request, [] { return KnownStages(); })](
                           const Plan& plan) { return evaluate(costs, plan, assumed, known.get()); };
    if (assumed.schedule != nullptr) { // else the orders are given
      request.at_least = LeastUnder(costs, assumed);
    }
    request.replay = [&costs, assumed](std::span<const Plan> plans) {
      return evaluate_on_engine(costs, plans, assumed);
    };
    request.plan_of = [&memo, scenario](const StrategyRow& other) {
      Scenario its = scenario;
      its.strategy = &other;
      return plan_scenario(memo, its).result;
    };
  }
  return request;
}

PlanRequest plan_request(StudyMemo& memo, const Scenario& scenario) {
  return plan_request(memo, scenario, memo.costs.believed(scenario.micro_batches, scenario.recompute));
}

Planned plan_of_strategy(StudyMemo& memo, const Scenario& scenario, FitChange change) {
  const int count = scenario.micro_batches;
  StudyCosts& costs = memo.costs;
  const Problem& problem = change == FitChange::none ? costs.believed(count, scenario.recompute)
                                                     : costs.problem(count, scenario.recompute, change);
  PlanRequest request = plan_request(memo, scenario, problem);
  const StrategyRow& planner = planner_of(*scenario.strategy, problem.model, request.devices.size());
  const bool replays = planner.searches && request.evaluate;
  request.any_plan = replays && scenario.any_plan;
  Planned planned = memo.plans.find_or_plan({.strategy = &planner,
                                             .micro_batches = count,
                                             .recompute = scenario.recompute,
                                             .change = change,
                                             .schedule = replays ? assumed_schedule(scenario) : nullptr,
                                             .orders = replays ? scenario.orders : nullptr,
                                             .chunks = request.chunks,
                                             .stage_placement = request.stage_placement,
                                             .seed = scenario.seed,
                                             .any_plan = request.any_plan},
                                            request);
  if (Plan* plan = std::get_if<Plan>(&planned.result)) {
    plan->strategy = scenario.strategy->name;
  }
  return planned;
}

PlanRequest plan_request(StudyMemo& memo, const Problem& problem, const ScheduleRow& schedule,
                         std::vector<DeviceId> devices) {
  const Study& study = memo.costs.study();
  return {.problem = problem,
          .devices = std::move(devices),
          .in_flight = in_flight_of(memo.counts, schedule, 1, problem),
          .seed = study.seed,
          .balance = study.balance};
}

Planned plan_scenario(StudyMemo& memo, const Scenario& scenario) {
  if (scenario.strategy == nullptr) {
    return {check_given(memo.costs, scenario)};
  }
  if (scenario.orders != nullptr && scenario.orders->micro_batches != scenario.micro_batches) {
    return {Infeasible{"the schedule is for " + std::to_string(scenario.orders->micro_batches) +
                       " micro-batches, the run has " + std::to_string(scenario.micro_batches)}};
  }
  return plan_by_strategy(memo, scenario);
}

Pace pace_of(const Scenario& scenario, int ranks) {
  return scenario.orders != nullptr ? pace_of(*scenario.orders)
                                    : pace_of(*scenario.schedule, ranks, scenario.micro_batches);
}

int choose_micro_batches(StudyMemo& memo, Scenario scenario) {
  const Study& study = memo.costs.study();
  const std::vector<int> counts = micro_batches_of(study, scenario.strategy);
  if (scenario.orders != nullptr) {
    const bool listed = std::find(counts.begin(), counts.end(), scenario.orders->micro_batches) != counts.end();
    return listed ? scenario.orders->micro_batches : counts.front();
  }
  int best = counts.front();
  Seconds least{kInfinity};
  for (const int count : counts) {
    if (counts.size() == 1 || !is_replayable(study, count)) {
      continue;
    }
    scenario.micro_batches = count;
    const Planned planned = plan_scenario(memo, scenario);
    if (const Plan* plan = std::get_if<Plan>(&planned.result)) {
      const Problem& problem = memo.costs.believed(count, scenario.recompute);
      const Pace pace = pace_of(scenario, static_cast<int>(plan->stages.size()));
      const Seconds estimate = estimate_period(problem, *plan, cost_plan(problem, *plan), pace);
      if (improves(estimate.value, least.value)) {
        least = estimate;
        best = count;
      }
    }
  }
  return best;
}

} // namespace stagecraft
