// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/compare.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "sim/base/improves.hpp"
#include "sim/result/metrics_table.hpp"
#include "sim/study/compare/confidence.hpp"
#include "sim/study/compare/plan_ahead.hpp"
#include "sim/study/compare/replay_prepared.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/study/planning/fit_changes.hpp"
#include "sim/study/planning/make_graph.hpp"

namespace stagecraft {

namespace {

// Runs within a billionth of the fastest of them count as equal. They keep the order in which they were made (by
// strategy, schedule and micro-batches), so that rounding does not rank them; each keeps its block.
void settle_ties(std::vector<std::size_t>& order, const std::vector<Prepared>& prepared, RankBy rank) {
  constexpr double kTie = 1e-9;
  for (std::size_t first = 0; first < order.size() && prepared[order[first]].run.feasible;) {
    const Run& best = prepared[order[first]].run;
    const auto ties = [&](const Run& run) {
      return block_of(run, rank) == block_of(best, rank) &&
             run.metrics.iteration.value <= best.metrics.iteration.value * (1 + kTie);
    };
    std::size_t end = first;
    while (end < order.size() && ties(prepared[order[end]].run)) {
      ++end;
    }
    std::sort(order.begin() + first, order.begin() + end);
    first = end;
  }
}

// `optimal` leaves a note when it could not look at every pipeline of one stage per device; without a note its
// objective is proven.
void add_optimal_bottlenecks(const std::vector<Scenario>& scenarios, std::vector<Prepared>& prepared) {
  std::map<std::tuple<std::string, int, int>, Seconds> proven;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Run& run = prepared[i].run;
    if (run.strategy == "optimal" && run.feasible && prepared[i].plan.note.empty() && run.objective) {
      proven[{scenarios[i].schedule_name(), scenarios[i].micro_batches, scenarios[i].recompute}] = run.objective->value;
    }
  }
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const auto found = proven.find({scenarios[i].schedule_name(), scenarios[i].micro_batches, scenarios[i].recompute});
    if (found != proven.end() && prepared[i].run.feasible) {
      prepared[i].run.optimal_bottleneck = found->second;
    }
  }
}

// What the bounds of all runs of a block that were replayed presume.
struct Presumed {
  bool kernels_in_turn = true, iterations_in_turn = true;
};

Presumed presumed_by(const std::vector<Prepared>& prepared, int block, RankBy rank) {
  Presumed presumed;
  for (const Prepared& one : prepared) {
    if (one.graph != nullptr && block_of(one.run, rank) == block) {
      presumed.iterations_in_turn = presumed.iterations_in_turn && one.timeline.iterations == 1;
      presumed.kernels_in_turn =
          presumed.kernels_in_turn &&
          std::all_of(one.run.stages.begin(), one.run.stages.end(), [](auto& stage) { return stage.streams <= 1; });
    }
  }
  return presumed;
}

// "1", "2 or 4", "8, 16 or 32".
std::string one_of(const std::vector<int>& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == counts.size() ? " or " : ", ") + std::to_string(counts[i]);
  }
  return text;
}

// "of these 8 devices with 2 or 4 micro-batches whose kernels and iterations run one after another".
std::string holds_for(const Study& study, const std::vector<Scenario>& scenarios, const Presumed& presumed) {
  const std::size_t devices = study.platform.devices.size();
  std::set<int> tried;
  for (const Scenario& scenario : scenarios) {
    tried.insert(scenario.micro_batches);
  }
  const std::vector<int> counts(tried.begin(), tried.end());
  const std::string in_turn = presumed.kernels_in_turn && presumed.iterations_in_turn ? "kernels and iterations"
                              : presumed.kernels_in_turn                              ? "kernels"
                              : presumed.iterations_in_turn                           ? "iterations"
                                                                                      : "";
  return "of " + (devices == 1 ? "this device" : "these " + std::to_string(devices) + " devices") + " with " +
         one_of(counts) + (counts == std::vector{1} ? " micro-batch" : " micro-batches") +
         (in_turn.empty() ? "" : " whose " + in_turn + " run one after another");
}

// One bound for all rows of a block: the least of theirs, so that none of them, whatever it is allowed, takes less.
void share_bound(std::vector<Prepared>& prepared, RankBy rank) {
  std::map<int, Seconds> least; // by block
  for (const Prepared& one : prepared) {
    if (one.run.feasible) {
      Seconds& bound = least.try_emplace(block_of(one.run, rank), Seconds{kInfinity}).first->second;
      bound = std::min(bound, one.run.lower_bound);
    }
  }
  for (Prepared& one : prepared) {
    one.run.lower_bound = one.run.feasible ? least.at(block_of(one.run, rank)) : one.run.lower_bound;
  }
}

// A plan says itself what it recomputes, so only the rule of a choice (when to recompute) matters: the first choice of
// each rule.
std::vector<int> differing_in_rule(const std::vector<RecomputeChoice>& choices) {
  std::vector<int> differing;
  for (int i = 0; i < static_cast<int>(choices.size()); ++i) {
    if (std::none_of(differing.begin(), differing.end(),
                     [&](int other) { return choices[other].rule == choices[i].rule; })) {
      differing.push_back(i);
    }
  }
  return differing;
}

// The period of a graph replayed as it is, since it may be a draw already.
Seconds period_of(const Study& study, const TaskGraph& graph, const Platform& platform, int iterations) {
  const ReplayRequest request{graph, platform, iterations};
  const Replayer replayer = Replayer(study.engine->replay).for_many();
  return measure(graph, replay_steady(replayer, {&request, 1}).front(), platform).iteration;
}

// Of a winner only: each part takes a replay. Few single parts, as a group of them helps at least as much.
std::vector<Sensitivity> sensitivities_of_winner(StudyCosts& costs, const ComparisonResult& result) {
  const Study& study = costs.study();
  constexpr std::size_t kSingle = 8;
  const Run& best = result.comparison.runs.front();
  if (result.comparison.runs.size() < 2 || !best.feasible) {
    return {};
  }
  // Devices: each part takes a replay of all. Beyond that, and in long runs, no single part is looked at, of which
  // folding knows none; parts of many have all that is alike. Unfolded, a run is no shorter.
  constexpr std::size_t kMostWhole = 1024;
  const Prepared& winner = result.prepared[result.of_run.front()];
  const bool is_folded = !best.classes.empty();
  const int iterations = winner.timeline.iterations;
  std::optional<TaskGraph> whole;
  if (!is_folded || (best.devices.size() <= kMostWhole && !is_long(*winner.graph, iterations))) {
    whole = whole_graph(costs, winner);
  }
  const bool folded = !whole || (is_folded && is_long(*whole, iterations));
  const auto replayed = [&](const Rig& one) {
    return period_of(study, one.graph, one.platform, iterations_of(study, one.graph));
  };
  const Rig rig{folded ? *winner.graph : std::move(*whole), study.platform};
  const std::vector<Part> parts = parts_of(rig.graph, rig.platform, folded ? 0 : kSingle);
  return sensitivities(rig, parts, replayed, replayed(rig), best.metrics.iteration);
}

// What is said of a winner that leaves next to nothing of a device's memory free; "" of any other.
std::string tight_memory(const Study& study, const Run& best) {
  double least = 1;
  std::string fullest;
  for (std::size_t at = 0; at < best.devices.size() && at < best.metrics.peak_memory.size(); ++at) {
    const auto device = std::find_if(study.platform.devices.begin(), study.platform.devices.end(),
                                     [&](const Device& one) { return one.name == best.devices[at]; });
    if (device == study.platform.devices.end()) {
      continue;
    }
    const Bytes memory = study.platform.types[static_cast<std::size_t>(device->type)].memory;
    const double left = 1 - best.metrics.peak_memory[at] / memory;
    if (left < least) {
      least = left;
      fullest = to_text(memory - best.metrics.peak_memory[at]) + " of " + to_text(memory);
    }
  }
  return !best.feasible || least >= kTightMemory || best.expected_memory // whose range says more
             ? ""
             : "Memory is tight: " + fullest +
                   " are left on the fullest device, and predictions of peak memory are 3 % "
                   "off in the median.";
}

// The runs in order: by block, then by time.
std::vector<std::size_t> ranked(const std::vector<Prepared>& prepared, RankBy rank) {
  std::vector<std::size_t> order(prepared.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Run& first = prepared[a].run;
    const Run& second = prepared[b].run;
    const int block = block_of(first, rank);
    if (block != block_of(second, rank)) {
      return block < block_of(second, rank);
    }
    return first.feasible && first.metrics.iteration < second.metrics.iteration;
  });
  settle_ties(order, prepared, rank);
  return order;
}

// The winner's period if each of its stages stepped by itself, as those of an asynchronous schedule do. Of a winner
// that waits for a barrier, where an asynchronous run is faster.
std::optional<Seconds> without_barrier(StudyCosts& costs, const ComparisonResult& result) {
  const Study& study = costs.study();
  const Run& best = result.comparison.runs.front();
  const int late = best_asynchronous(result.comparison);
  if (late < 0 || result.comparison.runs[late].metrics.iteration >= best.metrics.iteration ||
      study.training.step != StepMode::barrier) {
    return std::nullopt;
  }
  const Prepared& winner = result.prepared[result.of_run.front()];
  const Problem& problem = costs.problem(best.micro_batches, winner.recompute);
  const auto made =
      graph_of(costs, problem, {winner.plan, cost_plan(problem, winner.plan), winner.schedule, winner.rank_of},
               {.step = StepMode::local});
  const auto& graph = std::get<TaskGraph>(made); // the winner's own could be made
  return period_of(study, graph, study.platform, std::max(iterations_of(study, graph), kIterationsOfLocalStep));
}

// An own schedule is of one number of micro-batches: where these are searched, only that one is tried; where the study
// lists others, these are infeasible.
std::vector<int> counts_to_try(const Study& study, const StrategyRow* strategy, const StudySchedule& schedule) {
  if (schedule.own == nullptr) {
    return micro_batches_of(study, strategy);
  }
  const std::vector<int>& listed = study.training.micro_batches;
  const int own = schedule.own->micro_batches;
  const bool searched = listed == study.training.more_micro_batches;
  return searched && std::find(listed.begin(), listed.end(), own) != listed.end() ? std::vector{own} : listed;
}

// The scenarios without a look for what would make them fit, which waits until it is known which of them count.
std::vector<Scenario> unexplained(std::vector<Scenario> scenarios) {
  for (Scenario& scenario : scenarios) {
    scenario.explain = false;
  }
  return scenarios;
}

// Sets what would make infeasible runs fit, as far as the options ask for it. Where a plan could be made, a rule of the
// schedule stands against the run, not memory.
void find_changes(StudyMemo& memo, const std::vector<Scenario>& scenarios, const std::vector<std::size_t>& order,
                  const CompareOptions& options, std::vector<Prepared>& prepared) {
  std::vector<std::size_t> infeasible;
  std::copy_if(order.begin(), order.end(), std::back_inserter(infeasible),
               [&](std::size_t at) { return !prepared[at].run.feasible; });
  const auto first_end = infeasible.begin() + static_cast<long>(std::min(options.changes, infeasible.size()));
  const auto is_asked = [&](std::size_t at) {
    return prepared[at].plan.stages.empty() && looks_for_change(scenarios[at]);
  };
  std::vector<Scenario> first;
  for (auto at = infeasible.begin(); at != first_end; ++at) {
    if (is_asked(*at)) {
      first.push_back(scenarios[*at]);
    }
  }
  find_changes_ahead(memo, first, options.workers, options.progress);
  bool found = false;
  for (auto at = infeasible.begin(); at != infeasible.end() && (at < first_end || !found); ++at) {
    std::string& change = prepared[*at].run.would_fit;
    change = is_asked(*at) ? smallest_fitting_change(memo, scenarios[*at]) : change;
    found = found || !change.empty();
  }
}

} // namespace

std::vector<Scenario> scenarios_of(const Study& study) {
  std::vector<Scenario> scenarios;
  std::vector<int> all_choices(study.training.recomputes.size());
  std::iota(all_choices.begin(), all_choices.end(), 0);
  const std::vector<int> choices_of_plans = differing_in_rule(study.training.recomputes);
  const auto add = [&](const StrategyRow* strategy, const Plan* plan) {
    for (const StudySchedule& schedule : study.schedules) {
      for (const int count : counts_to_try(study, strategy, schedule)) {
        for (const int recompute : plan == nullptr ? all_choices : choices_of_plans) {
          scenarios.push_back({.strategy = strategy,
                               .plan = plan,
                               .schedule = schedule.row,
                               .orders = schedule.own.get(),
                               .micro_batches = count,
                               .recompute = recompute});
        }
      }
    }
  };
  for (const StrategyRow* strategy : study.strategies) {
    add(strategy, nullptr);
  }
  for (const Plan& plan : study.plans) {
    add(nullptr, &plan);
  }
  return scenarios;
}

ComparisonResult compare(StudyMemo& memo, const CompareOptions& options) {
  const Study& study = memo.costs.study();
  const std::vector<Scenario> scenarios = scenarios_of(study);
  ComparisonResult result;
  plan_ahead(memo, scenarios, options.workers, options.progress);
  result.prepared = prepare(memo, unexplained(scenarios));
  replay(memo.costs, result.prepared, options.workers);
  if (study.confidence > 0) {
    add_confidence(memo.costs, result.prepared);
  }
  add_optimal_bottlenecks(scenarios, result.prepared);
  share_bound(result.prepared, study.rank);
  result.comparison.rank = study.rank;
  result.comparison.model = study.model->name;
  result.comparison.platform = study.platform.name;
  result.comparison.global_batch = study.training.global_batch;
  const std::vector<std::size_t> order = ranked(result.prepared, study.rank);
  find_changes(memo, scenarios, order, options, result.prepared);
  for (const std::size_t at : order) {
    const Prepared& prepared = result.prepared[at];
    result.comparison.runs.push_back(prepared.run);
    result.of_run.push_back(prepared.twin >= 0 ? prepared.twin : at);
  }
  const int block = block_of(result.comparison.runs.front(), study.rank); // a study has at least one run
  result.comparison.bound_holds_for = holds_for(study, scenarios, presumed_by(result.prepared, block, study.rank));
  result.comparison.verdict =
      make_verdict(result.comparison, sensitivities_of_winner(memo.costs, result), without_barrier(memo.costs, result));
  if (const std::string tight = tight_memory(study, result.comparison.runs.front()); !tight.empty()) {
    std::vector<std::string>& verdict = result.comparison.verdict;
    verdict.insert(verdict.begin() + std::min<std::ptrdiff_t>(2, std::ssize(verdict)), tight);
  }
  if (!study.config_conflicts.empty()) {
    result.comparison.verdict.push_back("The configuration is of another model: " + join(study.config_conflicts, "; ") +
                                        ".");
  }
  return result;
}

} // namespace stagecraft
