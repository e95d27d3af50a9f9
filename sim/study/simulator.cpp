// SPDX-License-Identifier: Apache-2.0
#include "sim/study/simulator.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/base/clock.hpp"
#include "sim/base/statistics.hpp"
#include "sim/plan/check_plan.hpp"
#include "sim/plan/estimate.hpp"
#include "sim/plan/lower_bound.hpp"
#include "sim/result/stage_json.hpp"
#include "sim/study/describe_rounds.hpp"

namespace stagecraft {
namespace {

constexpr int kIterationsOfLocalStep = 4; // the period between the last two is steady

// Iterations that carry two micro-batches for each device: what stands in a pipeline that never runs dry is gone then.
int settling(const TaskGraph& graph) {
  const int micro_batches = 1 + *std::max_element(graph.micro_batch.begin(), graph.micro_batch.end());
  return (2 * static_cast<int>(graph.devices.size()) + micro_batches - 1) / micro_batches;
}

// One iteration, but several where there is a loader, of which whole cycles, or where iterations overlap.
int window_of(const TaskGraph& graph) {
  constexpr int kLeast = 4;
  const int least = graph.overlaps ? std::max(kLeast, settling(graph)) : graph.workers > 0 ? kLeast : 1;
  return (least + graph.cycle - 1) / graph.cycle * graph.cycle;
}

int chunks_of(const StrategyRow* strategy, const ScheduleRow& schedule, const Training& training) {
  return strategy == nullptr || strategy->pipeline ? chunks_of(schedule, training.chunks) : 1;
}

// Of a given schedule; 1 where its ranks do not divide its stages, which its check will say.
int chunks_of(const Schedule& orders) {
  const int ranks = static_cast<int>(orders.orders.size());
  return orders.stages % ranks == 0 ? orders.stages / ranks : 1;
}

std::vector<std::string> device_names(const Platform& platform, const std::vector<DeviceId>& devices) {
  std::vector<std::string> names;
  for (const DeviceId device : devices) {
    names.push_back(platform.devices[device].name);
  }
  return names;
}

// Whether two schedules make the same tasks of one plan.
bool same_work(const Schedule& one, const Schedule& other) {
  return one.orders == other.orders && one.splits_backward == other.splits_backward && one.flushes == other.flushes &&
         one.steps_each_micro_batch == other.steps_each_micro_batch && one.predicts_weights == other.predicts_weights &&
         one.versions == other.versions;
}

// What all stages of a plan have in common; where they differ, some of it runs again.
std::string recomputed_by(const Plan& plan) {
  const Recompute first = plan.stages.front().recompute;
  const bool alike =
      std::all_of(plan.stages.begin(), plan.stages.end(), [&](const Stage& stage) { return stage.recompute == first; });
  return std::string(name_of(alike ? first : Recompute::selective));
}

} // namespace

Simulator::Simulator(const Study& study, ScheduleCounts* shared)
    : study_(study), router_(study.platform), counts_(shared != nullptr ? *shared : own_counts_) {
  devices_.resize(study.platform.devices.size());
  std::iota(devices_.begin(), devices_.end(), 0);
  for (const RecomputeChoice& choice : study.training.recomputes) {
    trainings_.push_back(study.training);
    trainings_.back().recompute = choice;
  }
  const auto& speeds = study.believed_speeds;
  if (std::any_of(speeds.begin(), speeds.end(), [](double speed) { return speed != 1; })) {
    believed_ = at_speeds(study.platform, *study.cost, speeds);
  }
}

const Problem& Simulator::problem(int micro_batches, int recompute) {
  std::unique_ptr<Problem>& slot = problems_[{micro_batches, recompute}];
  if (!slot) {
    slot = std::make_unique<Problem>(
        make_problem(*study_.model, study_.platform, *study_.cost, trainings_.at(recompute), router_, micro_batches));
  }
  return *slot;
}

const Problem& Simulator::believed(int micro_batches, int recompute) {
  if (!believed_) {
    return problem(micro_batches, recompute);
  }
  std::unique_ptr<Problem>& slot = believed_problems_[{micro_batches, recompute}];
  if (!slot) {
    slot = std::make_unique<Problem>(make_problem(*study_.model, believed_->platform, *believed_->cost,
                                                  trainings_.at(recompute), router_, micro_batches));
  }
  return *slot;
}

// A request with costs of any problem; replays are those of the study's own.
PlanRequest Simulator::request_with(const Scenario& scenario, const Problem& problem) {
  PlanRequest request{.problem = problem,
                      .devices = devices_,
                      .seed = scenario.seed != 0 ? scenario.seed : study_.seed,
                      .drawn = scenario.seed != 0,
                      .balance = study_.balance};
  if (scenario.orders != nullptr) {
    request.chunks = chunks_of(*scenario.orders);
    request.in_flight = [counts = in_flight(*scenario.orders)](int stage, int) {
      return stage < static_cast<int>(counts.size()) ? counts[stage] : 1.0;
    };
    return request;
  }
  request.chunks = chunks_of(scenario.strategy, *scenario.schedule, study_.training);
  request.stage_placement = scenario.schedule->stage_placement;
  request.in_flight = in_flight_of(*scenario.schedule, request.chunks, problem);
  request.versions = versions_of(*scenario.schedule, request.chunks, scenario.micro_batches);
  if (&problem == &believed(scenario.micro_batches, scenario.recompute)) {
    request.evaluate = [this, schedule = &planned_row(*scenario.schedule), count = scenario.micro_batches,
                        recompute = scenario.recompute](const Plan& plan) {
      return evaluate(plan, *schedule, count, recompute);
    };
  }
  return request;
}

PlanRequest Simulator::request(const Scenario& scenario) {
  return request_with(scenario, believed(scenario.micro_batches, scenario.recompute));
}

PlanResult Simulator::plan_given(const Scenario& scenario) {
  const auto defects = plan_defects(*scenario.plan, *study_.model, study_.platform);
  if (!defects.empty()) {
    constexpr std::size_t kMostTold = 3; // `check` tells all
    const std::vector<std::string> told(defects.begin(), defects.begin() + std::min(defects.size(), kMostTold));
    const std::size_t rest = defects.size() - told.size();
    return Infeasible{join(told, "; ") + (rest > 0 ? "; and " + std::to_string(rest) + " more defects" : "")};
  }
  if (const std::string lacks = missing_kernel(problem(scenario.micro_batches, scenario.recompute), *scenario.plan);
      !lacks.empty()) {
    return Infeasible{lacks};
  }
  return *scenario.plan;
}

const Simulator::Planned& Simulator::planned(const Scenario& scenario) {
  const auto [slot, is_new] = planned_.try_emplace(
      {scenario.strategy, scenario.schedule, scenario.micro_batches, scenario.recompute, scenario.seed}, Planned{});
  if (!is_new) {
    return slot->second;
  }
  const auto start = Clock::now();
  const PlanRequest asked = request(scenario);
  const int chunks = asked.chunks;
  const std::tuple shared{scenario.strategy, scenario.micro_batches, scenario.recompute, chunks, asked.stage_placement};
  const bool shares = !scenario.strategy->searches && scenario.seed == 0;
  const auto unbound = shares ? unbound_.find(shared) : unbound_.end();
  PlanResult result =
      unbound != unbound_.end() && !plan_shortage(asked.problem, unbound->second, chunks, asked.in_flight,
                                                  asked.versions, asked.stage_placement)
          ? PlanResult{unbound->second}
          : make_plan(*scenario.strategy, asked);
  if (const Plan* plan = std::get_if<Plan>(&result); plan != nullptr && !plan->memory_bound && shares) {
    unbound_.try_emplace(shared, *plan);
  }
  if (scenario.strategy->pipeline && std::holds_alternative<Infeasible>(result)) {
    const ScheduleResult made =
        make_schedule(*scenario.schedule, {static_cast<int>(devices_.size()), scenario.micro_batches, chunks});
    if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
      result = *reason; // no memory would help
    }
  }
  slot->second = {std::move(result), seconds_since(start)};
  return slot->second;
}

PlanResult Simulator::plan(const Scenario& scenario) {
  if (scenario.strategy == nullptr) {
    return plan_given(scenario);
  }
  if (scenario.orders == nullptr) {
    return planned(scenario).result;
  }
  return make_plan(*scenario.strategy, request(scenario));
}

int Simulator::choose_micro_batches(Scenario scenario) {
  const std::vector<int>& counts = study_.training.micro_batches;
  int best = counts.front();
  Seconds least{std::numeric_limits<double>::infinity()};
  for (const int count : counts) {
    if (counts.size() == 1 || !is_replayable(count)) {
      continue;
    }
    scenario.micro_batches = count;
    const PlanResult result = plan(scenario);
    if (const Plan* plan = std::get_if<Plan>(&result)) {
      const Seconds estimate = estimate_iteration(believed(count, scenario.recompute), *plan,
                                                  cost_plan(believed(count, scenario.recompute), *plan));
      constexpr double kTie = 1e-9;
      if (estimate < (1 - kTie) * least) {
        least = estimate;
        best = count;
      }
    }
  }
  return best;
}

bool Simulator::is_replayable(int micro_batches) const {
  constexpr double kMostActions = 2e7; // their task graph fills some five gigabytes
  constexpr double kIterations = 16;   // are replayed with a loader
  const double actions = static_cast<double>(micro_batches) * static_cast<double>(devices_.size());
  return (study_.loader ? kIterations : 1) * actions <= kMostActions;
}

void Simulator::prepare(const Scenario& scenario, Prepared& prepared, const std::vector<Prepared>& earlier) {
  Run& run = prepared.run;
  prepared.brief = scenario.brief;
  run.strategy = scenario.strategy != nullptr ? std::string(scenario.strategy->name) : scenario.plan->strategy;
  run.schedule = scenario.orders != nullptr ? scenario.orders->name : std::string(scenario.schedule->name);
  run.engine = study_.engine->name;
  run.micro_batches = scenario.micro_batches;
  const RecomputeChoice& recompute = trainings_.at(scenario.recompute).recompute;
  run.recompute = {std::string(name_of(recompute.what)), recompute.rule};
  if (!is_replayable(run.micro_batches)) {
    run.why_not = std::to_string(run.micro_batches) + " micro-batches on " + std::to_string(devices_.size()) +
                  " devices are more work than a replay holds; allowed: at most 20000000 in their product";
    return;
  }
  PlanResult result = plan(scenario);
  run.planning_seconds = scenario.strategy != nullptr && scenario.orders == nullptr ? planned(scenario).seconds : 0;
  if (const Infeasible* reason = std::get_if<Infeasible>(&result)) {
    run.why_not = reason->reason;
    return;
  }
  prepared.plan = std::move(std::get<Plan>(result));
  run.note = prepared.plan.note;
  run.objective = prepared.plan.objective;
  if (!prepared.brief) {
    run.rounds = describe_rounds(prepared.plan.rounds, *study_.model, study_.platform);
  }
  const Problem& costs = problem(scenario.micro_batches, scenario.recompute);
  auto made = order(scenario, costs, prepared.plan);
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    run.why_not = reason->reason;
    return;
  }
  Ordered& ordered = std::get<Ordered>(made);
  prepared.plan = ordered.plan;
  prepared.schedule = ordered.schedule;
  const PlanCost& cost = ordered.cost;
  run.recompute.what = recomputed_by(prepared.plan);
  prepared.lazy_recompute = !recompute.rule.early && run.recompute.what != name_of(Recompute::none);
  run.order = prepared.schedule.name;
  run.staleness = prepared.schedule.staleness;
  run.bottleneck = bottleneck(costs, prepared.plan, cost);
  run.estimate = estimate_iteration(costs, prepared.plan, cost);
  if (!prepared.brief) {
    run.stages = describe_stages(costs.model, costs.platform, prepared.plan, cost);
    for (RunStage& stage : run.stages) {
      stage.streams = stage.streams > 0 ? stage.streams : study_.training.streams;
    }
  }
  const auto twin = std::find_if(earlier.begin(), earlier.end(), [&](const Prepared& other) {
    return other.graph != nullptr && other.run.micro_batches == run.micro_batches &&
           other.plan.stages == prepared.plan.stages && same_work(other.schedule, prepared.schedule) &&
           other.plan.default_loader == prepared.plan.default_loader && other.lazy_recompute == prepared.lazy_recompute;
  });
  if (twin != earlier.end()) {
    prepared.twin = static_cast<int>(twin - earlier.begin());
    return;
  }
  auto graph = graph_of(costs, ordered);
  if (const Infeasible* reason = std::get_if<Infeasible>(&graph)) {
    run.why_not = reason->reason;
    return;
  }
  prepared.graph = std::make_unique<TaskGraph>(std::move(std::get<TaskGraph>(graph)));
  if (!ordered.schedule.flushes) {
    ordered.schedule = from_empty(ordered.schedule);
    auto alone = graph_of(costs, ordered);
    prepared.alone = std::make_unique<TaskGraph>(std::move(std::get<TaskGraph>(alone)));
  }
}

Metrics Simulator::metrics_of(const TaskGraph& graph, Timeline timeline) const {
  timeline.window = window_of(graph);
  return measure(graph, timeline, study_.platform);
}

Metrics Simulator::metrics_of(const TaskGraph& graph) const {
  const ReplayRequest request{graph, study_.platform, iterations(graph)};
  return metrics_of(graph, std::move(replay_analytic({&request, 1}).front()));
}

Evaluation Simulator::evaluation_of(const TaskGraph& graph, const Metrics& metrics) const {
  if (std::string overflow = memory_overflow(graph, metrics); !overflow.empty()) {
    return {.why_not = std::move(overflow)};
  }
  return {.iteration = metrics.iteration, .devices = graph.devices, .busy = metrics.busy, .tail = metrics.tail};
}

Evaluation Simulator::evaluate(const Plan& plan, const ScheduleRow& schedule, int micro_batches, int recompute) {
  const auto made = graph_of(plan, schedule, micro_batches, recompute);
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    return {.why_not = reason->reason};
  }
  const TaskGraph& graph = std::get<TaskGraph>(made);
  return evaluation_of(graph, metrics_of(graph));
}

std::vector<Evaluation> Simulator::evaluate_at(const Plan& plan, const ScheduleRow& schedule, int micro_batches,
                                               std::span<const std::vector<double>> speeds) {
  const auto made = graph_of(plan, schedule, micro_batches);
  if (const Infeasible* reason = std::get_if<Infeasible>(&made)) {
    return std::vector(speeds.size(), Evaluation{.why_not = reason->reason});
  }
  const TaskGraph& graph = std::get<TaskGraph>(made);
  std::vector<std::vector<SpeedChange>> changes(speeds.size());
  std::vector<ReplayRequest> requests;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    for (const DeviceId device : devices_) {
      if (speeds[i][device] != 1) {
        changes[i].push_back({device, Seconds{0}, speeds[i][device]});
      }
    }
    requests.push_back({graph, study_.platform, iterations(graph), changes[i]});
  }
  std::vector<Evaluation> evaluations;
  for (Timeline& timeline : study_.engine->replay(requests)) {
    evaluations.push_back(evaluation_of(graph, metrics_of(graph, std::move(timeline))));
  }
  return evaluations;
}

PlanRequest Simulator::request(const Problem& problem, const ScheduleRow& schedule, std::vector<DeviceId> devices) {
  return {.problem = problem,
          .devices = std::move(devices),
          .in_flight = in_flight_of(schedule, 1, problem),
          .seed = study_.seed,
          .balance = study_.balance};
}

std::vector<Prepared> Simulator::prepare(const std::vector<Scenario>& scenarios, const ProgressCall& progress) {
  std::vector<Prepared> all;
  all.reserve(scenarios.size());
  for (const Scenario& scenario : scenarios) {
    Prepared prepared;
    prepare(scenario, prepared, all);
    if (prepared.plan.stages.empty() && scenario.strategy != nullptr && scenario.explain &&
        scenario.orders == nullptr) { // not the schedule's own rules
      prepared.run.would_fit = smallest_fitting_change(scenario);
    }
    all.push_back(std::move(prepared));
    if (progress) {
      progress(all.size(), scenarios.size());
    }
  }
  return all;
}

int Simulator::iterations(const TaskGraph& graph) const {
  if (graph.workers == 0 && !graph.overlaps) {
    return study_.training.step == StepMode::barrier ? 1 : kIterationsOfLocalStep;
  }
  if (graph.workers == 0) {
    return 1 + settling(graph) + window_of(graph);
  }
  const int begun = graph.workers + graph.queue; // batches, until the queue and all workers have been through
  const int micro_batches = 1 + *std::max_element(graph.micro_batch.begin(), graph.micro_batch.end());
  return kIterationsOfLocalStep + (begun + micro_batches - 1) / micro_batches + window_of(graph);
}

std::vector<ReplayRequest> Simulator::replay_requests(const std::vector<Prepared>& prepared) const {
  std::vector<ReplayRequest> requests;
  for (const Prepared& one : prepared) {
    if (one.graph) {
      requests.push_back({*one.graph, study_.platform, iterations(*one.graph)});
    }
  }
  for (const Prepared& one : prepared) {
    if (one.graph && one.alone) {
      requests.push_back({*one.alone, study_.platform});
    }
  }
  return requests;
}

void Simulator::replay(std::vector<Prepared>& prepared) {
  const std::vector<ReplayRequest> requests = replay_requests(prepared);
  const auto start = Clock::now();
  std::vector<Timeline> timelines = study_.engine->replay(requests);
  const auto replayed = std::count_if(prepared.begin(), prepared.end(), [](auto& one) { return one.graph != nullptr; });
  take_timelines(prepared, timelines, seconds_since(start) / static_cast<double>(std::max<long>(1, replayed)));
}

void Simulator::take_timelines(std::vector<Prepared>& prepared, std::span<Timeline> timelines, double seconds) {
  const auto replayed = std::count_if(prepared.begin(), prepared.end(), [](auto& one) { return one.graph != nullptr; });
  auto next = timelines.begin();
  auto alone = timelines.begin() + replayed;
  for (Prepared& one : prepared) {
    if (!one.graph) {
      continue;
    }
    one.timeline = std::move(*next++);
    one.timeline.window = window_of(*one.graph);
    one.run.replay_seconds = seconds;
    fill(one);
    if (study_.perturb && one.run.feasible) {
      perturb(one);
    }
    if (one.alone) {
      one.run.metrics.makespan = measure(*one.alone, *alone++, study_.platform).makespan;
    }
  }
  for (Prepared& one : prepared) {
    if (one.twin >= 0) {
      const Run& twin = prepared[one.twin].run;
      Run mine = one.run;
      one.run = twin;
      one.run.strategy = mine.strategy;
      one.run.schedule = mine.schedule;
      one.run.order = mine.order;
      one.run.note = mine.note;
      one.run.objective = mine.objective;
      one.run.rounds = mine.rounds;
      one.run.recompute = mine.recompute;
      one.run.planning_seconds = mine.planning_seconds;
    }
  }
}

void Simulator::name_devices(const TaskGraph& graph, Run& run) const {
  run.devices = device_names(study_.platform, graph.devices);
  for (const DeviceId device : devices_) {
    if (std::find(graph.devices.begin(), graph.devices.end(), device) == graph.devices.end()) {
      run.unused_devices.push_back(study_.platform.devices[device].name);
    }
  }
}

void Simulator::fill(Prepared& prepared) {
  Run& run = prepared.run;
  const TaskGraph& graph = *prepared.graph;
  run.metrics = measure(graph, prepared.timeline, study_.platform);
  if (!prepared.brief) {
    name_devices(graph, run);
  }
  run.why_not = memory_overflow(graph, run.metrics);
  if (!run.why_not.empty()) {
    return;
  }
  run.feasible = true;
  if (graph.workers > 0) {
    const auto host = std::find_if(kHostWaits.begin(), kHostWaits.end(),
                                   [&](const HostWaitRow& row) { return row.wait == graph.host; });
    run.loader = RunLoader{graph.workers, graph.queue, std::string(host->name)};
    run.data_stall = *std::max_element(run.metrics.stall.begin(), run.metrics.stall.end());
  }
  const double batch = study_.training.global_batch;
  run.samples_per_second = run.metrics.iteration.value > 0 ? batch / run.metrics.iteration.value : 0;
  constexpr double kMillion = 1e6;
  run.energy_per_sample = run.metrics.energy.total() / batch;
  run.cost_per_million_samples = run.metrics.cost * (kMillion / batch);
  if (prepared.brief) {
    return;
  }
  run.speedup = run.metrics.iteration.value > 0 ? single_device_seconds() / run.metrics.iteration : 0;
  const bool streams = std::any_of(run.stages.begin(), run.stages.end(), [](auto& stage) { return stage.streams > 1; });
  run.lower_bound = streams ? bound_of_streams() : bound(prepared.timeline.iterations == 1);
  const BusiestLink busiest = busiest_link(graph, study_.platform, run.metrics.iteration);
  if (busiest.link >= 0) {
    run.busiest_link = study_.platform.links[busiest.link].name;
    run.busiest_link_share = busiest.share;
  }
}

void Simulator::perturb(Prepared& prepared) {
  const TaskGraph& graph = *prepared.graph;
  prepared.run.perturbed = spread_of(perturbed_iterations(*study_.perturb, study_.platform, graph, iterations(graph),
                                                          window_of(graph), *study_.engine, study_.seed));
}

Seconds Simulator::single_device_seconds() {
  if (single_) {
    return *single_;
  }
  std::vector<int> counts = study_.training.micro_batches;
  counts.push_back(1);
  Seconds best{std::numeric_limits<double>::infinity()};
  const ModelTotals totals = totals_of(*study_.model);
  for (const int count : counts) {
    const Problem& costs = problem(count);
    for (std::size_t type = 0; type < study_.platform.types.size(); ++type) {
      Seconds whole;
      for (OperatorId op = 0; op < study_.model->size(); ++op) {
        whole += Seconds{costs.forward[type][op] + costs.backward_input[type][op] + costs.backward_weight[type][op]};
      }
      best = std::min(best,
                      count * whole + optimizer_time(study_.training, totals.parameters, study_.platform.types[type]));
    }
  }
  single_ = best;
  return best;
}

Seconds Simulator::bound(bool from_empty) {
  std::optional<Seconds>& known = bound_.at(from_empty ? 1 : 0);
  for (const int count : known ? std::vector<int>{} : study_.training.micro_batches) {
    const Seconds bound = lower_bound(problem(count), devices_, from_empty);
    known = known ? std::min(*known, bound) : bound;
  }
  return *known;
}

Seconds Simulator::bound_of_streams() {
  for (const int count : bound_of_streams_ ? std::vector<int>{} : study_.training.micro_batches) {
    const Seconds bound = lower_bound_of_streams(problem(count), devices_);
    bound_of_streams_ = bound_of_streams_ ? std::min(*bound_of_streams_, bound) : bound;
  }
  return *bound_of_streams_;
}

} // namespace stagecraft
