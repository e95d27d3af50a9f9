// SPDX-License-Identifier: Apache-2.0
#include "sim/study/compare/replay_prepared.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/system/clock.hpp"
#include "sim/base/units.hpp"
#include "sim/replay/what_if/lockstep.hpp"
#include "sim/study/compare/prepare.hpp"
#include "sim/study/measure/measure_graph.hpp"
#include "sim/study/measure/measure_run.hpp"
#include "sim/study/planning/make_graph.hpp"

namespace stagecraft {
namespace {

std::size_t graphs_in(const std::vector<Prepared>& prepared) {
  return std::count_if(prepared.begin(), prepared.end(), [](const Prepared& one) { return one.graph != nullptr; });
}

constexpr double kPercent = 100;

void add_note(const std::string& note, Run& run) { run.note += (run.note.empty() ? "" : "; ") + note; }

// Says by how much a run's period may be off.
void note_spread(double spread, Run& run) {
  if (spread > 0) {
    add_note("its period may be off by " + to_text(kPercent * spread, 2) +
                 " %, since it was not steady when the replay ended",
             run);
  }
}

// Says of a run that its exchanges have the times that they take alone, since they are too many.
void note_undivided(const TaskGraph& graph, Run& run) {
  if (graph.undivided > 0) {
    add_note("exchanges of tensor-parallel groups share links, but would make " + to_text(graph.undivided, 0) +
                 " tasks: they have the times that they take alone",
             run);
  }
}

// Says of a run that it is a draw.
void note_drift(int drift, Run& run) {
  if (drift >= 0) {
    add_note("equal replicas share links: this is the median of " + std::to_string(kDriftDraws) +
                 " draws with computations " + std::to_string(std::lround(kPercent * kDrift)) + " % apart",
             run);
  }
}

// Of the spreads, one for each graph, that of the graph of run `index`.
double spread_of_graph(const std::vector<Prepared>& prepared, const std::vector<double>& spreads, int index) {
  const auto before = std::count_if(prepared.begin(), prepared.begin() + index,
                                    [](const Prepared& one) { return one.graph != nullptr; });
  return spreads[static_cast<std::size_t>(before)];
}

// A run by itself is replayed by the engine itself.
Replayer replayer_of(const Study& study, bool by_itself, int workers) {
  const Replayer replayer(study.engine->replay, workers);
  return by_itself ? replayer : replayer.for_many();
}

void finish(StudyCosts& costs, std::vector<Prepared>& prepared, const Replayer& replayer, std::span<Timeline> timelines,
            double seconds) {
  const Study& study = costs.study();
  const std::vector<ReplayRequest> requests = replay_requests(study, prepared);
  std::vector<double> spreads = make_steady(replayer, requests, timelines);
  const std::vector<int> drifts = let_drift(study, replayer, requests, timelines, spreads);
  auto spread = spreads.begin();
  auto drift = drifts.begin();
  auto next = timelines.begin();
  auto alone = next + static_cast<long>(graphs_in(prepared));
  for (Prepared& one : prepared) {
    if (one.graph) {
      one.timeline = std::move(*next++);
      one.run.replay_seconds = seconds;
      one.drift = *drift++;
      measure_run(costs, one, one.alone ? &*alone++ : nullptr);
      note_spread(*spread++, one.run);
      note_drift(one.drift, one.run);
      note_undivided(*one.graph, one.run);
    }
  }
  for (Prepared& one : prepared) {
    if (one.twin >= 0) {
      MeasuredRun& measured = one.run;
      const MeasuredRun& of_twin = prepared[one.twin].run;
      measured = of_twin;
      note_spread(spread_of_graph(prepared, spreads, one.twin), one.run);
      note_drift(prepared[one.twin].drift, one.run);
    }
  }
}

void replay_by(const Replayer& replayer, StudyCosts& costs, std::vector<Prepared>& prepared) {
  const auto start = Clock::now();
  std::vector<Timeline> timelines = replayer(replay_requests(costs.study(), prepared));
  const double graphs = static_cast<double>(std::max<std::size_t>(1, graphs_in(prepared)));
  finish(costs, prepared, replayer, timelines, seconds_since(start) / graphs);
}

} // namespace

std::vector<ReplayRequest> replay_requests(const Study& study, const std::vector<Prepared>& prepared) {
  std::vector<ReplayRequest> requests;
  for (const Prepared& one : prepared) {
    if (one.graph) {
      requests.push_back({*one.graph, study.platform, iterations_of(study, *one.graph)});
    }
  }
  for (const Prepared& one : prepared) {
    if (one.graph && one.alone) {
      requests.push_back({*one.alone, study.platform});
    }
  }
  return until_steady(requests);
}

void take_timelines(StudyCosts& costs, std::vector<Prepared>& prepared, std::span<Timeline> timelines, double seconds,
                    int workers) {
  finish(costs, prepared, replayer_of(costs.study(), prepared.size() == 1, workers), timelines, seconds);
}

void replay(StudyCosts& costs, std::vector<Prepared>& prepared, int workers) {
  replay_by(replayer_of(costs.study(), prepared.size() == 1, workers), costs, prepared);
}

TaskGraph replayed_graph(const Study& study, const Prepared& prepared) {
  return prepared.drift >= 0 ? drifted(*prepared.graph, study.seed, prepared.drift) : *prepared.graph;
}

TaskGraph whole_graph(StudyCosts& costs, const Prepared& prepared) {
  if (prepared.graph->folded.devices.empty()) {
    return replayed_graph(costs.study(), prepared);
  }
  const Problem& problem = costs.problem(prepared.run.micro_batches, prepared.recompute);
  auto made =
      graph_of(costs, problem, {prepared.plan, cost_plan(problem, prepared.plan), prepared.schedule, prepared.rank_of});
  return std::move(std::get<TaskGraph>(made)); // what was folded could be made
}

WholeRun whole_run(StudyCosts& costs, const Prepared& prepared) {
  const Study& study = costs.study();
  if (prepared.graph->folded.devices.empty()) {
    return {replayed_graph(study, prepared), prepared.timeline};
  }
  WholeRun whole{whole_graph(costs, prepared), {}};
  const ReplayRequest request{whole.graph, study.platform, prepared.timeline.iterations};
  whole.timeline = std::move(study.engine->replay({&request, 1}).front());
  whole.timeline.window = prepared.timeline.window;
  return whole;
}

bool is_long(const TaskGraph& graph, int iterations) {
  constexpr std::int64_t kMostExecuted = 200'000;
  return static_cast<std::int64_t>(graph.tasks()) * iterations > kMostExecuted;
}

const TaskGraph* folded_of(const Prepared& prepared, const WholeRun& whole) {
  constexpr std::size_t kMostDevices = 64;
  const bool folded = prepared.graph && !prepared.graph->folded.devices.empty();
  return folded && (prepared.run.devices.size() > kMostDevices || is_long(whole.graph, whole.timeline.iterations))
             ? &*prepared.graph
             : nullptr;
}

Prepared run_scenario(StudyMemo& memo, const Scenario& scenario, bool of_many) {
  std::vector<Prepared> prepared = prepare(memo, {scenario});
  replay_by(replayer_of(memo.costs.study(), !of_many, 1), memo.costs, prepared);
  return std::move(prepared.front());
}

} // namespace stagecraft
