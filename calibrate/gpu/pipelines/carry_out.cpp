// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/carry_out.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

namespace stagecraft::gpu {
namespace {

std::int64_t end_of(const std::vector<LaneSpan>& spans) {
  std::int64_t end = 0;
  for (const LaneSpan& span : spans) {
    end = std::max(end, span.finish);
  }
  return end;
}

// Makes time 0 the start of the first step.
void shift(std::vector<LaneSpan>& spans) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  for (const LaneSpan& span : spans) {
    begin = std::min(begin, span.start);
  }
  for (LaneSpan& span : spans) {
    span.start -= begin;
    span.finish -= begin;
  }
}

// A device's clocks and the host's agree only to some microseconds. A step that seems to begin before its inputs were
// ready is moved to begin with them. Returns the largest correction in nanoseconds.
std::int64_t settle(const std::vector<LaneStep>& steps, std::vector<LaneSpan>& spans) {
  std::int64_t most = 0;
  std::vector<std::int64_t> free;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto lane = static_cast<std::size_t>(steps[step].lane);
    free.resize(std::max(free.size(), lane + 1), 0);
    std::int64_t earliest = free[lane];
    for (const int before : steps[step].after) {
      earliest = std::max(earliest, spans[static_cast<std::size_t>(before)].finish);
    }
    LaneSpan& span = spans[step];
    most = std::max(most, earliest - span.start);
    span.start = std::max(span.start, earliest);
    span.finish = std::max(span.finish, span.start);
    free[lane] = span.finish;
  }
  return most;
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

struct PipelineRun {
  std::vector<LaneSpan> spans; // [step]
  std::int64_t corrected = 0;  // nanoseconds

  std::int64_t end() const { return end_of(spans); }
};

std::string describe(const Pipeline& pipeline, const StepOrder& order, int step) {
  const int entry = order.entries[static_cast<std::size_t>(step)];
  const PipelineWork& work = pipeline.works[static_cast<std::size_t>(order.steps[static_cast<std::size_t>(step)].work)];
  return pipeline.names[static_cast<std::size_t>(entry % pipeline.tasks())] + " of iteration " +
         std::to_string(entry / pipeline.tasks()) + " on " +
         pipeline.devices[static_cast<std::size_t>(work.device)].name;
}

PipelineRun run_steps(const Pipeline& pipeline, const StepOrder& order, Lanes& lanes) {
  PipelineRun run;
  try {
    run.spans = lanes.run(order.steps);
  } catch (const LaneFailure& failure) {
    throw std::runtime_error(describe(pipeline, order, failure.step) + ": " + failure.what());
  }
  shift(run.spans);
  run.corrected = settle(order.steps, run.spans);
  return run;
}

std::vector<LaneSpan> spans_of_entries(const StepOrder& order, const std::vector<LaneSpan>& spans) {
  std::vector<LaneSpan> entries(order.joined.size());
  for (std::size_t step = 0; step < spans.size(); ++step) {
    entries[static_cast<std::size_t>(order.entries[step])] = spans[step];
  }
  for (std::size_t entry = 0; entry < entries.size(); ++entry) {
    for (const int step : order.joined[entry]) { // a join ends with the last of its steps
      entries[entry].finish = std::max(entries[entry].finish, spans[static_cast<std::size_t>(step)].finish);
      entries[entry].start = entries[entry].finish;
    }
  }
  return entries;
}

} // namespace

CarriedOut carry_out(const Pipeline& pipeline, Lanes& lanes, int runs,
                     const std::function<void(const std::string&)>& told) {
  const auto tell = [&](const std::string& text) {
    if (told) {
      told(text);
    }
  };
  const StepOrder order = order_steps(pipeline);
  tell("warming up");
  run_steps(pipeline, order, lanes);
  std::vector<MeasuredParts> parts = {measure_parts(pipeline, lanes, 0)};
  std::vector<PipelineRun> all;
  for (int run = 0; run < runs; ++run) {
    tell("run " + std::to_string(run + 1) + " of " + std::to_string(runs));
    all.push_back(run_steps(pipeline, order, lanes));
    parts.push_back(measure_parts(pipeline, lanes, parts.size()));
  }
  std::sort(all.begin(), all.end(),
            [](const PipelineRun& one, const PipelineRun& other) { return one.end() < other.end(); });
  const PipelineRun& middle = all[(all.size() - 1) / 2];
  const auto spread = static_cast<double>(all[all.size() * 3 / 4].end() - all[all.size() / 4].end());
  CarriedOut carried;
  carried.pipeline = digest_of(to_text(pipeline));
  carried.conditions = lanes.conditions();
  carried.conditions.emplace_back("runs", std::to_string(runs));
  carried.conditions.emplace_back("spread_of_runs", percent(spread / std::max(1.0, static_cast<double>(middle.end()))));
  carried.conditions.emplace_back("clocks_corrected", std::to_string(middle.corrected) + " ns");
  carried.parts = median_of(parts);
  if (pipeline.devices.size() > 1) {
    tell("measuring pairs");
    carried.parts.contention = measure_contention(pipeline, carried.parts.alone, lanes);
  }
  carried.spans = spans_of_entries(order, middle.spans);
  return carried;
}

} // namespace stagecraft::gpu
