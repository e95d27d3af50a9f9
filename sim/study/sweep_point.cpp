// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sweep_point.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

namespace stagecraft {
namespace {

// A study with its runs, kept until their replays are in.
struct Bench {
  Study study;
  std::unique_ptr<Simulator> simulator;
  std::vector<Prepared> prepared;
  std::size_t first = 0; // its first point
};

const EngineRow& engine_row(const Study& study, const std::string& engine) {
  return engine.empty() || engine == kEstimate ? *study.engine : find_by_name(kEngines, engine, "engine", {});
}

PointResult result_of(const Prepared& prepared) {
  const Run& run = prepared.run;
  if (!run.feasible) {
    return {PointStatus::infeasible, run.order, run.why_not, {}};
  }
  return {PointStatus::feasible, run.order, "", figures_of(prepared)};
}

// Closed forms alone, of a run that was never replayed.
PointResult estimate_of(const Bench& bench, const Prepared& prepared) {
  const bool planned = !prepared.plan.stages.empty() && prepared.run.why_not.empty();
  if (!planned) {
    return result_of(prepared);
  }
  Prepared estimated;
  estimated.run = prepared.run;
  estimated.plan = prepared.plan;
  estimated.run.metrics.iteration = estimated.run.estimate;
  estimated.run.metrics.makespan = estimated.run.estimate;
  estimated.run.samples_per_second = bench.study.training.global_batch / estimated.run.estimate.value;
  Figures figures = figures_of(estimated);
  for (std::size_t i = 0; i < kFigures; ++i) {
    static constexpr std::array<std::string_view, 6> kKnown = {"iteration_seconds",  "makespan_seconds",
                                                               "samples_per_second", "estimate_seconds",
                                                               "bottleneck_seconds", "stages"};
    if (std::find(kKnown.begin(), kKnown.end(), stagecraft::figures()[i].name) == kKnown.end()) {
      figures.at(i) = std::nan("");
    }
  }
  return {PointStatus::feasible, estimated.run.order, "", figures};
}

// Benches wait for one replay of them all where an engine is dear to start.
class PointEvaluation {
public:
  PointEvaluation(const SweepInputs& inputs, const std::string& engine, std::span<const Point> points,
                  ScheduleCounts& counts)
      : inputs_(inputs), engine_(engine), points_(points), results_(points.size()), counts_(counts) {}

  std::vector<PointResult> run() {
    for (std::size_t first = 0; first < points_.size();) {
      std::size_t end = first + 1;
      while (end < points_.size() && points_[end].number == points_[first].number) {
        ++end;
      }
      prepare(first, end);
      first = end;
    }
    replay();
    return std::move(results_);
  }

private:
  void prepare(std::size_t first, std::size_t end) {
    const auto points = points_.subspan(first, end - first);
    try {
      auto bench = std::make_unique<Bench>();
      // The study must not move once a simulator refers to it.
      fill(*bench, points);
      bench->first = first;
      for (const Prepared& one : bench->prepared) {
        tasks_ += one.graph ? one.graph->tasks() : 0;
      }
      waiting_.push_back(std::move(bench));
    } catch (const std::exception& failure) {
      fail(first, end, failure);
      return;
    }
    constexpr long kMostTasks = 200'000; // some hundred bytes each
    if (tasks_ > kMostTasks || !waiting_.back()->study.engine->dear_to_start) {
      replay();
    }
  }

  void fill(Bench& bench, std::span<const Point> points) {
    const std::optional<Combination> found = combination(inputs_.sweep, points.front().number);
    check(found.has_value(), "a combination that a condition rules out was given out");
    bench.study = study_of(inputs_, *found);
    bench.study.engine = &engine_row(bench.study, engine_);
    bench.simulator = std::make_unique<Simulator>(bench.study, &counts_);
    const std::vector<Scenario> all = scenarios_of(bench.study);
    std::vector<Scenario> asked;
    for (const Point& point : points) {
      asked.push_back(all.at(point.run));
      asked.back().explain = false;
      asked.back().brief = true;
    }
    bench.prepared = bench.simulator->prepare(asked);
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

  // All that wait for one engine, at once; where that fails, one after the other.
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
        const std::vector<ReplayRequest> own = bench->simulator->replay_requests(bench->prepared);
        requests.insert(requests.end(), own.begin(), own.end());
      }
      ends.push_back(requests.size());
    }
    const Study& any = benches[0]->study;
    std::vector<Timeline> timelines = any.engine->replay(any.platform, requests);
    for (std::size_t i = 0; i < benches.size(); ++i) {
      Bench& bench = *benches[i];
      const std::size_t begin = i == 0 ? 0 : ends[i - 1];
      if (engine_ != kEstimate) {
        bench.simulator->take_timelines(bench.prepared, std::span(timelines).subspan(begin, ends[i] - begin), 0);
      }
      for (std::size_t j = 0; j < bench.prepared.size(); ++j) {
        results_[bench.first + j] =
            engine_ == kEstimate ? estimate_of(bench, bench.prepared[j]) : result_of(bench.prepared[j]);
      }
    }
  }

  const SweepInputs& inputs_;
  const std::string& engine_;
  std::span<const Point> points_;
  std::vector<PointResult> results_;
  std::vector<std::unique_ptr<Bench>> waiting_;
  long tasks_ = 0;
  ScheduleCounts& counts_;
};

template <class Value> void put(std::string& bytes, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& bytes, const std::string& text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

class Reader {
public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  bool done() const { return at_ >= bytes_.size(); }
  template <class Value> Value take() {
    Value value;
    check(at_ + sizeof value <= bytes_.size(), "a message between processes is cut short");
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string take_text() {
    const auto size = take<std::uint32_t>();
    check(at_ + size <= bytes_.size(), "a message between processes is cut short");
    std::string text = bytes_.substr(at_, size);
    at_ += size;
    return text;
  }

private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

} // namespace

Study study_of(const SweepInputs& inputs, const Combination& combination) {
  std::vector<Setting> settings = inputs.settings;
  settings.insert(settings.end(), combination.settings.begin(), combination.settings.end());
  Study study = load_study(inputs.sweep.document, inputs.folders, settings);
  if (study.confidence > 0) {
    throw InputError(inputs.sweep.document.where,
                     "'confidence' is drawn over a whole comparison; allowed: 0 in a sweep");
  }
  return study;
}

std::vector<PointResult> evaluate(const SweepInputs& inputs, const std::string& engine, std::span<const Point> points,
                                  ScheduleCounts& counts) {
  constexpr std::size_t kMostCounts = 10'000;
  if (counts.known.size() > kMostCounts) {
    counts.known.clear();
  }
  inputs.folders.files->keep_types();
  return PointEvaluation(inputs, engine, points, counts).run();
}

std::string to_bytes(const std::string& engine, std::span<const Point> points) {
  std::string bytes;
  put(bytes, engine);
  for (const Point& point : points) {
    put(bytes, point.number);
    put(bytes, point.run);
  }
  return bytes;
}

std::pair<std::string, std::vector<Point>> points_from(const std::string& bytes) {
  Reader reader(bytes);
  std::pair<std::string, std::vector<Point>> read{reader.take_text(), {}};
  while (!reader.done()) {
    const auto number = reader.take<std::uint64_t>();
    read.second.push_back({number, reader.take<std::uint32_t>()});
  }
  return read;
}

std::string to_bytes(std::span<const PointResult> results) {
  std::string bytes;
  for (const PointResult& result : results) {
    put(bytes, result.status);
    put(bytes, result.order);
    put(bytes, result.reason);
    if (result.status == PointStatus::feasible) {
      put(bytes, result.figures);
    }
  }
  return bytes;
}

std::vector<PointResult> results_from(const std::string& bytes) {
  std::vector<PointResult> results;
  for (Reader reader(bytes); !reader.done();) {
    PointResult& result = results.emplace_back();
    result.status = reader.take<PointStatus>();
    result.order = reader.take_text();
    result.reason = reader.take_text();
    if (result.status == PointStatus::feasible) {
      result.figures = reader.take<Figures>();
    }
  }
  return results;
}

} // namespace stagecraft
