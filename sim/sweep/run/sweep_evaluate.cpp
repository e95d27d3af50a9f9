// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/run/sweep_evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/study/compare/compare.hpp"
#include "sim/study/compare/confidence.hpp"
#include "sim/study/compare/replay_prepared.hpp"

namespace stagecraft {
namespace {

// A study with its runs, kept until their replays are in.
struct Bench {
  Study study;
  std::unique_ptr<StudyMemo> memo;
  std::vector<Prepared> prepared;
  std::size_t first = 0; // its first point
};

// The result of a run that was planned but not replayed: its estimate.
PointResult estimate_of(const Study& study, const Prepared& prepared) {
  Prepared estimated;
  estimated.run = prepared.run;
  estimated.plan = prepared.plan;
  estimated.run.metrics.iteration = estimated.run.estimate;
  estimated.run.metrics.makespan = estimated.run.estimate;
  estimated.run.samples_per_second = study.training.global_batch / estimated.run.estimate.value;
  Figures figures = figures_of(estimated);
  for (std::size_t i = 0; i < kFigures; ++i) {
    if (!stagecraft::figures()[i].by_estimate) {
      figures.at(i) = std::nan("");
    }
  }
  return {PointStatus::feasible, estimated.run.order, "", figures};
}

// Where an engine is slow to start, benches wait until one replay does them all.
class PointEvaluation {
public:
  PointEvaluation(const SweepInputs& inputs, const std::string& engine, ScheduleCounts& counts)
      : inputs_(inputs), engine_(engine), counts_(counts) {}

  std::vector<PointResult> run(std::span<const CombinationRuns> combinations) {
    for (const CombinationRuns& one : combinations) {
      if (!one.runs.empty()) {
        const std::size_t first = results_.size();
        results_.resize(first + one.runs.size());
        prepare(one, first);
      }
    }
    replay();
    return std::move(results_);
  }

private:
  void prepare(const CombinationRuns& asked, std::size_t first) {
    try {
      auto bench = std::make_unique<Bench>();
      // The study must not move once its memo refers to it.
      fill(*bench, asked);
      bench->first = first;
      for (const Prepared& one : bench->prepared) {
        tasks_ += one.graph ? one.graph->tasks() : 0;
      }
      waiting_.push_back(std::move(bench));
    } catch (const std::exception& failure) {
      fail(first, first + asked.runs.size(), failure);
      return;
    }
    constexpr long kMostTasks = 200'000; // some hundred bytes each
    if (tasks_ > kMostTasks || !waiting_.back()->study.engine->slow_to_start) {
      replay();
    }
  }

  void fill(Bench& bench, const CombinationRuns& asked) {
    bench.study = study_of(inputs_, asked.combination);
    set_engine(bench.study, engine_);
    bench.memo = std::make_unique<StudyMemo>(bench.study, counts_);
    const std::vector<Scenario> all = scenarios_of(bench.study);
    std::vector<Scenario> scenarios;
    for (const std::uint32_t run : asked.runs) {
      scenarios.push_back(all.at(run));
      scenarios.back().explain = false;
      scenarios.back().brief = true;
    }
    bench.prepared = stagecraft::prepare(*bench.memo, scenarios);
  }

  void fail(std::size_t first, std::size_t end, const std::exception& failure) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&failure) != nullptr;
    const bool bug = dynamic_cast<const std::logic_error*>(&failure) != nullptr;
    const std::string reason = memory ? "this takes more memory than there is"
                                      : (bug ? "a bug, please report it: " : "") + std::string(failure.what());
    for (std::size_t i = first; i < end; ++i) {
      results_[i] = {PointStatus::failed, "", reason, {}};
    }
  }

  // Replays all benches that wait for one engine at once; where that fails, one after the other.
  void replay() {
    std::vector<std::unique_ptr<Bench>> benches;
    benches.swap(waiting_);
    tasks_ = 0;
    for (auto first = benches.begin(); first != benches.end();) {
      const auto end = std::find_if(first, benches.end(), [&](const std::unique_ptr<Bench>& bench) {
        return bench->study.engine != (*first)->study.engine;
      });
      replay({first, end});
      first = end;
    }
  }

  void replay(std::span<const std::unique_ptr<Bench>> benches) {
    try {
      replay_together(benches);
    } catch (const std::exception& failure) {
      if (benches.size() == 1) {
        fail(benches[0]->first, benches[0]->first + benches[0]->prepared.size(), failure);
        return;
      }
      for (const std::unique_ptr<Bench>& bench : benches) {
        replay({&bench, 1});
      }
    }
  }

  void replay_together(std::span<const std::unique_ptr<Bench>> benches) {
    std::vector<ReplayRequest> requests;
    std::vector<std::size_t> ends;
    for (const std::unique_ptr<Bench>& bench : benches) {
      if (engine_ != kEstimate) {
        for (const ReplayRequest& own : replay_requests(bench->study, bench->prepared)) {
          requests.push_back(own);
        }
      }
      ends.push_back(requests.size());
    }
    const Study& any = benches[0]->study;
    std::vector<Timeline> timelines = any.engine->replay(requests);
    for (std::size_t i = 0; i < benches.size(); ++i) {
      Bench& bench = *benches[i];
      const std::size_t begin = i == 0 ? 0 : ends[i - 1];
      if (engine_ != kEstimate) {
        take_timelines(bench.memo->costs, bench.prepared, std::span(timelines).subspan(begin, ends[i] - begin), 0);
      }
    }
    for (const std::unique_ptr<Bench>& bench : benches) {
      finish(*bench);
    }
  }

  void finish(Bench& bench) {
    try {
      if (bench.study.confidence > 0) {
        add_confidence(bench.memo->costs, bench.prepared);
      }
    } catch (const std::exception& failure) { // its graphs still have drawn times and cannot be replayed again
      fail(bench.first, bench.first + bench.prepared.size(), failure);
      return;
    }
    for (std::size_t i = 0; i < bench.prepared.size(); ++i) {
      results_[bench.first + i] = result_of(bench.study, bench.prepared[i], engine_);
    }
  }

  const SweepInputs& inputs_;
  const std::string& engine_;
  std::vector<PointResult> results_;
  std::vector<std::unique_ptr<Bench>> waiting_;
  long tasks_ = 0;
  ScheduleCounts& counts_;
};

} // namespace

void set_engine(Study& study, const std::string& engine) {
  const EngineRow& row =
      engine.empty() || engine == kEstimate ? *study.engine : find_by_name(kEngines, engine, "engine", {});
  if (&row != study.engine || engine == kEstimate) {
    study.confidence = 0;
  }
  study.engine = &row;
}

PointResult result_of(const Study& study, const Prepared& prepared, std::string_view engine) {
  const Run& run = prepared.run;
  if (engine == kEstimate && !prepared.plan.stages.empty() && run.why_not.empty()) {
    return estimate_of(study, prepared);
  }
  if (!run.feasible) {
    return {PointStatus::infeasible, run.order, run.why_not, {}};
  }
  return {PointStatus::feasible, run.order, "", figures_of(prepared)};
}

void keep_to_axes(Study& study, const std::vector<Setting>& settings) {
  if (std::any_of(settings.begin(), settings.end(),
                  [](const Setting& setting) { return setting.key == "training.micro_batches"; })) {
    study.training.more_micro_batches.clear();
  }
}

Study study_of(const SweepInputs& inputs, const Combination& combination) {
  std::vector<Setting> settings = inputs.settings;
  settings.insert(settings.end(), combination.settings.begin(), combination.settings.end());
  const auto is_first = [](const Setting& setting) { return says_which(setting.key); };
  if (!std::is_partitioned(settings.begin(), settings.end(), is_first)) {
    std::stable_partition(settings.begin(), settings.end(), is_first);
  }
  Study study = load_study(inputs.sweep.document, inputs.folders, settings, Purpose::comparison);
  keep_to_axes(study, combination.settings);
  return study;
}

std::vector<PointResult> evaluate(const SweepInputs& inputs, const std::string& engine,
                                  std::span<const CombinationRuns> combinations, ScheduleCounts& counts) {
  constexpr std::size_t kMostCounts = 10'000;
  if (counts.known.size() > kMostCounts) {
    counts = {};
  }
  inputs.folders.files->keep_types();
  return PointEvaluation(inputs, engine, counts).run(combinations);
}

} // namespace stagecraft
