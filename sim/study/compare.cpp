// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/base/improves.hpp"
#include "sim/study/confidence.hpp"
#include "sim/study/measure_graph.hpp"
#include "sim/study/replay_prepared.hpp"

namespace stagecraft {

namespace {

// Runs within a billionth of the fastest of them count as equal. They keep the order in which they were made (by
// strategy, schedule and micro-batches), so that rounding does not rank them.
void settle_ties(std::vector<std::size_t>& order, const std::vector<Prepared>& prepared) {
  constexpr double kTie = 1e-9;
  for (std::size_t first = 0; first < order.size() && prepared[order[first]].run.feasible;) {
    const double best = prepared[order[first]].run.metrics.iteration.value;
    std::size_t end = first;
    while (end < order.size() && prepared[order[end]].run.feasible &&
           prepared[order[end]].run.metrics.iteration.value <= best * (1 + kTie)) {
      ++end;
    }
    std::sort(order.begin() + first, order.begin() + end);
    first = end;
  }
}

// `optimal` leaves a note when it could not look at every pipeline of one stage per device; without a note its
// objective is proven.
void add_optimal_bottlenecks(const std::vector<Scenario>& scenarios, std::vector<Prepared>& prepared) {
  std::map<std::tuple<const ScheduleRow*, int, int>, Seconds> proven;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Run& run = prepared[i].run;
    if (run.strategy == "optimal" && run.feasible && prepared[i].plan.note.empty() && run.objective) {
      proven[{scenarios[i].schedule, scenarios[i].micro_batches, scenarios[i].recompute}] = run.objective->value;
    }
  }
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const auto found = proven.find({scenarios[i].schedule, scenarios[i].micro_batches, scenarios[i].recompute});
    if (found != proven.end() && prepared[i].run.feasible) {
      prepared[i].run.optimal_bottleneck = found->second;
    }
  }
}

// What the bounds of all runs that were replayed presume.
struct Presumed {
  bool kernels_in_turn = true, iterations_in_turn = true;
};

Presumed presumed_by(const std::vector<Prepared>& prepared) {
  Presumed presumed;
  for (const Prepared& one : prepared) {
    if (one.graph != nullptr && one.run.feasible) {
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
std::string holds_for(const Study& study, const Presumed& presumed) {
  const std::size_t devices = study.platform.devices.size();
  std::vector<int> counts = study.training.micro_batches;
  std::sort(counts.begin(), counts.end());
  const std::string in_turn = presumed.kernels_in_turn && presumed.iterations_in_turn ? "kernels and iterations"
                              : presumed.kernels_in_turn                              ? "kernels"
                              : presumed.iterations_in_turn                           ? "iterations"
                                                                                      : "";
  return "of " + (devices == 1 ? "this device" : "these " + std::to_string(devices) + " devices") + " with " +
         one_of(counts) + (counts == std::vector{1} ? " micro-batch" : " micro-batches") +
         (in_turn.empty() ? "" : " whose " + in_turn + " run one after another");
}

// One bound for all rows: the least of theirs, so that none of them, whatever it is allowed, takes less.
void share_bound(std::vector<Prepared>& prepared) {
  Seconds least{kInfinity};
  for (const Prepared& one : prepared) {
    least = one.run.feasible ? std::min(least, one.run.lower_bound) : least;
  }
  for (Prepared& one : prepared) {
    one.run.lower_bound = one.run.feasible ? least : one.run.lower_bound;
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

// Of a winner only: each part takes a replay. Few single parts, as a group of them helps at least as much.
std::vector<Sensitivity> sensitivities_of_winner(const Study& study, const ComparisonResult& result) {
  constexpr std::size_t kSingle = 8;
  const Run& best = result.comparison.runs.front();
  if (result.comparison.runs.size() < 2 || !best.feasible) {
    return {};
  }
  const Prepared& winner = result.prepared[result.of_run.front()];
  const auto replayed = [&](const Rig& one) { // as it is, since it may be a draw already
    const ReplayRequest request{one.graph, one.platform, iterations_of(study, one.graph)};
    return measure(one.graph, replay_steady(study.engine->replay, {&request, 1}).front(), one.platform).iteration;
  };
  const Rig rig{replayed_graph(study, winner), study.platform};
  const std::vector<Part> parts = parts_of(rig.graph, rig.platform, kSingle);
  return sensitivities(rig, parts, replayed, replayed(rig), best.metrics.iteration);
}

} // namespace

std::vector<Scenario> scenarios_of(const Study& study) {
  std::vector<Scenario> scenarios;
  std::vector<int> all_choices(study.training.recomputes.size());
  std::iota(all_choices.begin(), all_choices.end(), 0);
  const std::vector<int> choices_of_plans = differing_in_rule(study.training.recomputes);
  const auto add = [&](const StrategyRow* strategy, const Plan* plan) {
    for (const ScheduleRow* schedule : study.schedules) {
      for (const int count : study.training.micro_batches) {
        for (const int recompute : plan == nullptr ? all_choices : choices_of_plans) {
          scenarios.push_back({.strategy = strategy,
                               .plan = plan,
                               .schedule = schedule,
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

ComparisonResult compare(StudyMemo& memo, const ProgressCall& progress) {
  const Study& study = memo.costs.study();
  const std::vector<Scenario> scenarios = scenarios_of(study);
  ComparisonResult result;
  result.prepared = prepare(memo, scenarios, progress);
  replay(memo.costs, result.prepared);
  if (study.confidence > 0) {
    add_confidence(memo.costs, result.prepared);
  }
  add_optimal_bottlenecks(scenarios, result.prepared);
  share_bound(result.prepared);
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
  settle_ties(order, result.prepared);
  result.comparison.model = study.model->name;
  result.comparison.platform = study.platform.name;
  result.comparison.global_batch = study.training.global_batch;
  for (const std::size_t at : order) {
    const Prepared& prepared = result.prepared[at];
    result.comparison.runs.push_back(prepared.run);
    result.of_run.push_back(prepared.twin >= 0 ? prepared.twin : at);
  }
  result.comparison.bound_holds_for = holds_for(study, presumed_by(result.prepared));
  result.comparison.verdict = make_verdict(result.comparison, sensitivities_of_winner(study, result));
  return result;
}

} // namespace stagecraft
