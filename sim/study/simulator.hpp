// From a study's row to a run: plan, schedule, task graph, replay, metrics.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/cost/device_speeds.hpp"
#include "sim/result/run.hpp"
#include "sim/study/study.hpp"

namespace stagecraft {

/// One combination to run. Exactly one of `strategy` and `plan` is set, and one of `schedule` and `orders`, a schedule
/// from elsewhere.
struct Scenario {
  const StrategyRow* strategy = nullptr;
  const Plan* plan = nullptr;
  const ScheduleRow* schedule = nullptr;
  const Schedule* orders = nullptr;
  int micro_batches = 1;
  int recompute = 0;      ///< which of the training's choices
  std::uint64_t seed = 0; ///< of a strategy that draws; 0: the study's
  bool explain = true;    ///< where it does not fit, find out what would
  bool brief = false;     ///< figures alone: no names, bound or speed-up
};

/// A scenario made ready for replay. Without a graph the run is infeasible, or the same as run `twin`.
struct Prepared {
  Run run;
  Plan plan;
  Schedule schedule;
  std::unique_ptr<TaskGraph> graph;
  std::unique_ptr<TaskGraph> alone; ///< one iteration from empty, where iterations overlap
  bool lazy_recompute = false;      ///< what runs again waits for its gradient
  bool brief = false;               ///< as its scenario
  int twin = -1;                    ///< index of an equal one prepared earlier
  Timeline timeline;
};

using ProgressCall = std::function<void(std::size_t done, std::size_t all)>;

/// What planners assume of schedules, whatever the model and the platform are: simulators of several studies may share
/// it.
struct ScheduleCounts {
  /// Nothing where the schedule cannot be had.
  struct Assumed {
    std::vector<double> in_flight; ///< [stage]
    std::vector<int> versions;     ///< [stage]
  };
  /// By schedule, ranks, chunks, micro-batches, and the share of activations that weight gradients need.
  std::map<std::tuple<const ScheduleRow*, int, int, int, double>, Assumed> known;
};

/// Runs scenarios of one study. Keeps what they share: costs per micro-batch size, routes, schedules' counts in flight,
/// plans.
class Simulator {
public:
  explicit Simulator(const Study& study, ScheduleCounts* shared = nullptr);

  /// Plans, orders and builds task graphs; scenarios with equal plans and orders share one graph.
  /// `progress`, where given, hears how many of how many are done.
  std::vector<Prepared> prepare(const std::vector<Scenario>& scenarios, const ProgressCall& progress = {});
  /// Replays what was prepared, in one batch, and fills in the figures.
  void replay(std::vector<Prepared>& prepared);
  /// The same in two halves, so that a batch may hold the work of several simulators: what is to replay, in the order
  /// of the timelines that the other half takes. Each replay took `seconds`.
  std::vector<ReplayRequest> replay_requests(const std::vector<Prepared>& prepared) const;
  void take_timelines(std::vector<Prepared>& prepared, std::span<Timeline> timelines, double seconds);

  /// Draws the cost model's errors as often as the study says and fills in how long each feasible run then takes, its
  /// plan and order staying as they are, and how often it is the fastest. Errors of one family of kernels on one device
  /// type go together, and every run sees the same draw.
  void add_confidence(std::vector<Prepared>& prepared);

  /// What the engine `analytic` measures of a plan under a schedule: what planners that search are given.
  Evaluation evaluate(const Plan& plan, const ScheduleRow& schedule, int micro_batches, int recompute = 0);

  /// What the study's engine measures of a plan when device d of the platform computes speeds[d] times as fast as its
  /// type says; an evaluation for each such list. The noise is 0.
  std::vector<Evaluation> evaluate_at(const Plan& plan, const ScheduleRow& schedule, int micro_batches,
                                      std::span<const std::vector<double>> speeds);

  /// What strategies that ask for replays get, and what the schedule holds in flight, for a problem of the caller's.
  PlanRequest request(const Problem& problem, const ScheduleRow& schedule, std::vector<DeviceId> devices);

  /// The plan alone, checked against memory and kernels.
  PlanResult plan(const Scenario& scenario);
  /// What the scenario's strategy is called with. The simulator must outlive it.
  PlanRequest request(const Scenario& scenario);
  /// Of the study's numbers of micro-batches the one whose plan is feasible with the least estimate_iteration(); the
  /// first where none is. Sets it in the scenario.
  int choose_micro_batches(Scenario scenario);
  /// Everything that keeps a given plan from running under its schedule, in words: its shape, kernels that lack, and
  /// memory as the replay finds it.
  std::vector<std::string> defects(const Scenario& scenario);
  const Problem& problem(int micro_batches, int recompute = 0);
  /// The same as planners believe it to be, key `believed` of the study.
  const Problem& believed(int micro_batches, int recompute = 0);
  /// Time of the fastest single device for the whole batch, memory aside, at its best micro-batch size.
  Seconds single_device_seconds();
  /// Proven bound on any run's iteration time, with any of the study's numbers of micro-batches. `from_empty` as in
  /// sim/plan/lower_bound.hpp.
  Seconds bound(bool from_empty);
  /// The same for runs whose kernels may overlap.
  Seconds bound_of_streams();

private:
  struct Planned {
    PlanResult result;
    double seconds = 0; ///< of planning
  };

  /// A plan on the ranks of its schedule, with what it costs there.
  struct Ordered {
    Plan plan;
    PlanCost cost;
    Schedule schedule;
    std::vector<int> rank_of; ///< as PlacedPlan; empty for the list schedule
  };

  const Planned& planned(const Scenario& scenario); ///< of a strategy; planned once
  PlanResult plan_given(const Scenario& scenario);
  PlanRequest request_with(const Scenario& scenario, const Problem& problem);
  /// The plan as its schedule runs it; or why it cannot.
  std::variant<Ordered, Infeasible> order(const Scenario& scenario, const Problem& costs, const Plan& plan);
  std::variant<Schedule, Infeasible> named_schedule(const Scenario& scenario, const Problem& costs,
                                                    const Ordered& ordered);
  ScheduleRequest schedule_request(const Scenario& scenario, const Problem& costs, int chunks, const Ordered& ordered);
  /// As the plan's stages say, by the rule; or why a given order and the plan do not go together.
  static std::optional<Infeasible> add_recompute(Ordered& ordered, const RecomputeRule& rule);
  TaskGraph make_graph(const TaskGraphRequest& request) const; ///< its transfers ordered where the study says so
  /// A graph to replay; without one, the reason.
  std::variant<TaskGraph, Infeasible> graph_of(const Problem& problem, const Ordered& ordered);
  std::variant<TaskGraph, Infeasible> graph_of(const Plan& plan, const ScheduleRow& schedule, int micro_batches,
                                               int recompute = 0);
  Metrics metrics_of(const TaskGraph& graph, Timeline timeline) const;
  Metrics metrics_of(const TaskGraph& graph) const; ///< by the engine `analytic`
  Evaluation evaluation_of(const TaskGraph& graph, const Metrics& metrics) const;
  const ScheduleCounts::Assumed& assumed(const ScheduleRow& row, int ranks, int chunks, int micro_batches,
                                         double kept = 1);
  int versions_of(const ScheduleRow& row, int chunks, int micro_batches);
  std::function<double(int, int)> in_flight_of(const ScheduleRow& row, int chunks, const Problem& problem);
  bool is_replayable(int micro_batches) const; ///< whether so many have room in a task graph
  std::string smallest_fitting_change(const Scenario& scenario);
  std::string missing_memory(const Scenario& scenario);
  void prepare(const Scenario& scenario, Prepared& prepared, const std::vector<Prepared>& earlier);
  std::vector<std::string> memory_overflows(const TaskGraph& graph, const Metrics& metrics) const;
  std::string memory_overflow(const TaskGraph& graph, const Metrics& metrics) const; ///< the first, or ""
  int iterations(const TaskGraph& graph) const; ///< to replay until the period is steady
  void name_devices(const TaskGraph& graph, Run& run) const;
  void fill(Prepared& prepared);
  void perturb(Prepared& prepared); ///< in the study's disturbed worlds

  const Study& study_;
  Router router_;
  std::vector<DeviceId> devices_;
  std::vector<Training> trainings_;                                                      ///< by choice of recompute
  std::map<std::pair<int, int>, std::unique_ptr<Problem>> problems_, believed_problems_; ///< micro-batches, recompute
  std::optional<SpeedWorld> believed_; ///< where it differs from the truth
  ScheduleCounts own_counts_;
  ScheduleCounts& counts_; ///< its own, or shared ones
  std::map<std::tuple<const StrategyRow*, const ScheduleRow*, int, int, std::uint64_t>, Planned> planned_;
  /// By strategy, micro-batches, recompute, chunks and stage placement: a plan that memory did not shape, so any
  /// schedule that it fits may have it.
  std::map<std::tuple<const StrategyRow*, int, int, int, StagePlacement>, Plan> unbound_;
  std::optional<Seconds> single_, bound_of_streams_;
  std::array<std::optional<Seconds>, 2> bound_; ///< [from empty]
};

} // namespace stagecraft
