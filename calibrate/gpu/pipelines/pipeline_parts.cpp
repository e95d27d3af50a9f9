// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/pipeline_parts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "calibrate/gpu/sweep/statistics.hpp"

namespace stagecraft::gpu {
namespace {

double seconds(std::int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); }
double lasted(const LaneSpan& span) { return seconds(span.finish - span.start); }

double median(std::vector<double> values) { return values.empty() ? 0 : summarize(std::move(values)).median; }

// The program of a device, `times` times in a row, without waiting for other devices.
std::vector<LaneStep> program_of(const Pipeline& pipeline, std::size_t device, int times) {
  std::vector<LaneStep> steps;
  for (int time = 0; time < times; ++time) {
    for (const int task : pipeline.programs[device]) {
      steps.push_back({static_cast<int>(device), pipeline.work[static_cast<std::size_t>(task)], {}});
    }
  }
  return steps;
}

double sum(const std::vector<LaneSpan>& spans) {
  return std::accumulate(spans.begin(), spans.end(), 0.0,
                         [](double all, const LaneSpan& span) { return all + lasted(span); });
}

// The times of each device's program while nothing else runs. The first one runs right after what was before, when a
// GPU is still slow, so rounds begin with another one each.
std::vector<std::vector<LaneSpan>> run_alone(const Pipeline& pipeline, Lanes& lanes, std::size_t round) {
  const std::size_t devices = pipeline.programs.size();
  std::vector<std::vector<LaneSpan>> alone(devices);
  for (std::size_t turn = 0; turn < devices; ++turn) {
    const std::size_t device = (round + turn) % devices;
    if (const std::vector<LaneStep> steps = program_of(pipeline, device, 1); !steps.empty()) {
      alone[device] = lanes.run(steps);
    }
  }
  return alone;
}

void average(const Pipeline& pipeline, const std::vector<std::vector<LaneSpan>>& alone, MeasuredParts& parts) {
  std::vector<int> tasks(pipeline.works.size(), 0);
  parts.alone.assign(pipeline.works.size(), 0);
  std::vector<double> gaps;
  for (std::size_t device = 0; device < alone.size(); ++device) {
    for (std::size_t at = 0; at < alone[device].size(); ++at) {
      const int task = pipeline.programs[device][at];
      const auto work = static_cast<std::size_t>(pipeline.work[static_cast<std::size_t>(task)]);
      parts.alone[work] += lasted(alone[device][at]);
      ++tasks[work];
      if (at > 0) {
        gaps.push_back(seconds(alone[device][at].start - alone[device][at - 1].finish));
      }
    }
  }
  for (std::size_t work = 0; work < tasks.size(); ++work) {
    parts.alone[work] /= std::max(1, tasks[work]);
  }
  parts.gap = std::max(0.0, median(gaps));
}

// The programs of all devices at once, ordered by when their steps would begin; shorter programs run several times.
std::vector<LaneStep> all_at_once(const Pipeline& pipeline, const std::vector<std::vector<LaneSpan>>& alone) {
  double longest = 0;
  for (const std::vector<LaneSpan>& spans : alone) {
    longest = std::max(longest, sum(spans));
  }
  std::vector<std::pair<double, LaneStep>> timed; // when each step would begin
  for (std::size_t device = 0; device < alone.size(); ++device) {
    const double own = sum(alone[device]);
    const int times = own > 0 ? std::max(1, static_cast<int>(std::lround(longest / own))) : 1;
    double begin = 0;
    const std::vector<LaneStep> steps = program_of(pipeline, device, times);
    for (std::size_t at = 0; at < steps.size(); ++at) {
      timed.emplace_back(begin, steps[at]);
      begin += lasted(alone[device][at % alone[device].size()]);
    }
  }
  std::stable_sort(timed.begin(), timed.end(),
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::vector<LaneStep> steps;
  for (auto& [begin, step] : timed) {
    steps.push_back(std::move(step));
  }
  return steps;
}

// How much slower each device is until the first of them has run its last program.
std::vector<double> slowdowns_of(const Pipeline& pipeline, const std::vector<std::vector<LaneSpan>>& alone,
                                 const std::vector<LaneStep>& steps, const std::vector<LaneSpan>& spans) {
  std::vector<std::int64_t> last(alone.size(), 0);
  for (std::size_t step = 0; step < steps.size(); ++step) {
    last[static_cast<std::size_t>(steps[step].lane)] = spans[step].finish;
  }
  std::int64_t end = 0;
  for (std::size_t device = 0; device < last.size(); ++device) {
    if (!pipeline.programs[device].empty()) {
      end = end == 0 ? last[device] : std::min(end, last[device]);
    }
  }
  std::vector<double> before(alone.size(), 0), now(alone.size(), 0);
  std::vector<std::size_t> at(alone.size(), 0);
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const auto device = static_cast<std::size_t>(steps[step].lane);
    const LaneSpan& usual = alone[device][at[device]++ % alone[device].size()];
    if (spans[step].finish <= end) {
      before[device] += lasted(usual);
      now[device] += lasted(spans[step]);
    }
  }
  std::vector<double> slowdowns;
  for (std::size_t device = 0; device < alone.size(); ++device) {
    slowdowns.push_back(before[device] > 0 ? now[device] / before[device] : 1);
  }
  return slowdowns;
}

// For each copy, a computation of its sender that makes the data and one of its receiver that takes it; -1: none.
struct HopEnds {
  int before = -1, after = -1;
};

std::vector<HopEnds> ends_of(const Pipeline& pipeline) {
  std::vector<HopEnds> ends(pipeline.works.size());
  for (std::size_t task = 0; task < pipeline.work.size(); ++task) {
    const auto own = static_cast<std::size_t>(pipeline.work[task]);
    const PipelineWork& work = pipeline.works[own];
    for (const int next : pipeline.after[task]) {
      const auto later = static_cast<std::size_t>(pipeline.work[static_cast<std::size_t>(next)]);
      const PipelineWork& other = pipeline.works[later];
      if (work.kind == PipelineWork::Kind::compute && other.kind == PipelineWork::Kind::copy &&
          work.device == other.device) {
        ends[later].before = static_cast<int>(own);
      } else if (work.kind == PipelineWork::Kind::copy && other.kind == PipelineWork::Kind::compute &&
                 work.to == other.device) {
        ends[own].after = static_cast<int>(later);
      }
    }
  }
  return ends;
}

// Measures one copy at a time, from the end of the sender's computation to the start of the receiver's.
void measure_hops(const Pipeline& pipeline, Lanes& lanes, MeasuredParts& parts) {
  constexpr int kRepeats = 4; // the first one warms up
  const std::vector<HopEnds> ends = ends_of(pipeline);
  std::vector<LaneStep> steps;
  const auto add = [&](int lane, int work) {
    steps.push_back({lane, work, {}});
    if (steps.size() > 1) {
      steps.back().after.push_back(static_cast<int>(steps.size()) - 2);
    }
  };
  std::vector<std::size_t> copies; // the steps of the copies
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (std::size_t work = 0; work < pipeline.works.size(); ++work) {
      const PipelineWork& copy = pipeline.works[work];
      if (copy.kind == PipelineWork::Kind::copy) {
        add(copy.device, ends[work].before);
        copies.push_back(steps.size());
        add(static_cast<int>(pipeline.devices.size()) + copy.channel, static_cast<int>(work));
        add(copy.to, ends[work].after);
      }
    }
  }
  parts.hops.resize(pipeline.works.size());
  if (steps.empty()) {
    return;
  }
  const std::vector<LaneSpan> spans = lanes.run(steps);
  for (std::size_t i = copies.size() / kRepeats; i < copies.size(); ++i) {
    const std::size_t step = copies[i];
    parts.hops[static_cast<std::size_t>(steps[step].work)].push_back(
        seconds(spans[step + 1].start - spans[step - 1].finish));
  }
}

} // namespace

MeasuredParts measure_parts(const Pipeline& pipeline, Lanes& lanes, std::size_t round) {
  MeasuredParts parts;
  const std::vector<std::vector<LaneSpan>> alone = run_alone(pipeline, lanes, round);
  average(pipeline, alone, parts);
  const std::vector<LaneStep> steps = all_at_once(pipeline, alone);
  parts.slowdowns =
      steps.empty() ? std::vector<double>(alone.size(), 1) : slowdowns_of(pipeline, alone, steps, lanes.run(steps));
  measure_hops(pipeline, lanes, parts);
  return parts;
}

namespace {

// The works that a device computes, without repetition.
std::vector<int> works_of(const Pipeline& pipeline, std::size_t device) {
  std::vector<int> works;
  for (const int task : pipeline.programs[device]) {
    works.push_back(pipeline.work[static_cast<std::size_t>(task)]);
  }
  std::sort(works.begin(), works.end());
  works.erase(std::unique(works.begin(), works.end()), works.end());
  return works;
}

constexpr int kRepeats = 3; // of each work, beside another device and without it

// The works of a device several times.
std::vector<LaneStep> by_itself(const Pipeline& pipeline, std::size_t device) {
  std::vector<LaneStep> steps;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (const int work : works_of(pipeline, device)) {
      steps.push_back({static_cast<int>(device), work, {}});
    }
  }
  return steps;
}

// The same, and at the same time a work of another device over and over, for longer.
std::vector<LaneStep> side_by_side(const Pipeline& pipeline, const std::vector<double>& alone, std::size_t device,
                                   std::size_t other) {
  constexpr double kSlower = 1.5; // slowdown of a device by another one, at most
  const LaneStep company{pipeline.works[other].device, static_cast<int>(other), {}};
  std::vector<LaneStep> steps = {company};
  double until = 0, covered = alone[other]; // seconds
  for (const LaneStep& step : by_itself(pipeline, device)) {
    steps.push_back(step);
    until += kSlower * alone[static_cast<std::size_t>(step.work)];
    while (covered < until) {
      steps.push_back(company);
      covered += alone[other];
    }
  }
  return steps;
}

// For each work, how long `device` took for it, in seconds, each time between `begin` and `end`.
std::vector<std::vector<double>> times_of(std::size_t device, const std::vector<LaneStep>& steps,
                                          const std::vector<LaneSpan>& spans, std::size_t works, std::int64_t begin,
                                          std::int64_t end) {
  std::vector<std::vector<double>> took(works);
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (steps[step].lane == static_cast<int>(device) && spans[step].start >= begin && spans[step].finish <= end) {
      took[static_cast<std::size_t>(steps[step].work)].push_back(lasted(spans[step]));
    }
  }
  return took;
}

// Measures the slowdown of each computation of `device` while another device does one over and over. What it is
// compared with is measured just before, for as long: a GPU that computes for longer runs at a lower clock.
void measure_beside(const Pipeline& pipeline, const std::vector<double>& alone, std::size_t device, std::size_t other,
                    Lanes& lanes, std::vector<double>& contention) {
  constexpr auto kEver = std::numeric_limits<std::int64_t>::max();
  const std::vector<LaneStep> own = by_itself(pipeline, device);
  const std::vector<std::vector<double>> usual = times_of(device, own, lanes.run(own), alone.size(), -kEver, kEver);
  const std::vector<LaneStep> steps = side_by_side(pipeline, alone, device, other);
  const std::vector<LaneSpan> spans = lanes.run(steps);
  std::int64_t begin = kEver, end = 0; // when the other device is at work
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (steps[step].work == static_cast<int>(other)) {
      begin = std::min(begin, spans[step].start);
      end = std::max(end, spans[step].finish);
    }
  }
  const std::vector<std::vector<double>> took = times_of(device, steps, spans, alone.size(), begin, end);
  for (std::size_t work = 0; work < took.size(); ++work) {
    if (const double base = median(usual[work]); !took[work].empty() && base > 0) {
      contention[work * alone.size() + other] = median(took[work]) / base;
    }
  }
}

} // namespace

std::vector<double> measure_contention(const Pipeline& pipeline, const std::vector<double>& alone, Lanes& lanes) {
  constexpr double kShortest =
      50e-6; // seconds; shorter works hardly slow others, and take longer to enqueue than to run
  std::vector<double> contention(alone.size() * alone.size(), 1);
  for (std::size_t other = 0; other < alone.size(); ++other) {
    for (std::size_t device = 0; device < pipeline.devices.size() && alone[other] >= kShortest; ++device) {
      if (pipeline.works[other].device != static_cast<int>(device) && !pipeline.programs[device].empty()) {
        measure_beside(pipeline, alone, device, other, lanes, contention);
      }
    }
  }
  return contention;
}

MeasuredParts median_of(const std::vector<MeasuredParts>& rounds) {
  MeasuredParts parts = rounds.front();
  const auto middle = [&](const auto& value) {
    std::vector<double> values;
    for (const MeasuredParts& round : rounds) {
      values.push_back(value(round));
    }
    return median(std::move(values));
  };
  parts.gap = middle([](const MeasuredParts& round) { return round.gap; });
  for (std::size_t work = 0; work < parts.alone.size(); ++work) {
    parts.alone[work] = middle([&](const MeasuredParts& round) { return round.alone[work]; });
  }
  for (std::size_t device = 0; device < parts.slowdowns.size(); ++device) {
    parts.slowdowns[device] = middle([&](const MeasuredParts& round) { return round.slowdowns[device]; });
  }
  for (std::size_t round = 1; round < rounds.size(); ++round) {
    for (std::size_t work = 0; work < parts.hops.size(); ++work) {
      const std::vector<double>& more = rounds[round].hops[work];
      parts.hops[work].insert(parts.hops[work].end(), more.begin(), more.end());
    }
  }
  return parts;
}

} // namespace stagecraft::gpu
