// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/truth/pass_spans.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/base/statistics.hpp"

namespace stagecraft {
namespace {

struct Span {
  double start = std::numeric_limits<double>::infinity(), finish = 0;

  void add(double from, double to) {
    start = std::min(start, from);
    finish = std::max(finish, to);
  }
  bool any() const { return finish > 0; }
};

// The passes of one micro-batch in a stage.
struct Spans {
  Span forward, backward, weight;
};

Span* span_of(Spans& spans, TaskKind kind) {
  switch (kind) {
  case TaskKind::forward:
    return &spans.forward;
  case TaskKind::backward:
  case TaskKind::recompute:
    return &spans.backward;
  case TaskKind::weight:
    return &spans.weight;
  default:
    return nullptr;
  }
}

double median_of(const std::vector<Spans>& spans, Span Spans::*which) {
  std::vector<double> seconds;
  for (const Spans& one : spans) {
    if ((one.*which).any()) {
      seconds.push_back((one.*which).finish - (one.*which).start);
    }
  }
  return seconds.empty() ? 0 : quantile(seconds, 0.5);
}

// Adds what devices do in the first iteration.
void add_devices(const TaskGraph& graph, const Timeline& timeline, PassSpans& result) {
  std::vector<Span> spans(graph.devices.size());
  std::vector<double> busy(graph.devices.size(), 0.0);
  for (std::size_t task = 0; task < graph.work.size(); ++task) {
    const Work& work = graph.works[static_cast<std::size_t>(graph.work[task])];
    Spans kinds;
    if (work.device >= 0 && span_of(kinds, work.kind) != nullptr) {
      spans[static_cast<std::size_t>(work.device)].add(timeline.start[task], timeline.finish[task]);
      busy[static_cast<std::size_t>(work.device)] += timeline.finish[task] - timeline.start[task];
    }
  }
  for (std::size_t device = 0; device < spans.size(); ++device) {
    if (spans[device].any()) {
      result.busy = std::max(result.busy, busy[device]);
      result.longest = std::max(result.longest, spans[device].finish - spans[device].start);
    }
  }
}

} // namespace

PassSpans pass_spans(const TaskGraph& graph, const Timeline& timeline, int stages) {
  std::map<std::pair<int, int>, Spans> found; // by stage and micro-batch
  const auto each_task = [&](const auto& visit) {
    for (std::size_t task = 0; task < graph.work.size(); ++task) {
      visit(graph.works[static_cast<std::size_t>(graph.work[task])], graph.micro_batch[task], timeline.start[task],
            timeline.finish[task]);
    }
  };
  each_task([&](const Work& work, int micro_batch, double start, double finish) {
    if (Span* span = span_of(found[{work.stage, micro_batch}], work.kind)) {
      span->add(start, finish - (finish - start) * work.handing_over); // as the profile of a pass, without it
    }
  });
  each_task([&](const Work& work, int micro_batch, double start, double finish) {
    const auto spans = work.kind == TaskKind::exchange ? found.find({work.stage, micro_batch}) : found.end();
    if (spans != found.end()) {
      Spans& passes = spans->second;
      (finish <= passes.backward.start ? passes.forward : passes.backward).add(start, finish);
    }
  });
  std::vector<std::vector<Spans>> of_stages(static_cast<std::size_t>(stages));
  for (const auto& [place, spans] : found) {
    of_stages[static_cast<std::size_t>(place.first)].push_back(spans);
  }
  PassSpans result;
  for (const std::vector<Spans>& spans : of_stages) {
    result.forward.push_back(median_of(spans, &Spans::forward));
    result.backward.push_back(median_of(spans, &Spans::backward));
    result.weight.push_back(median_of(spans, &Spans::weight));
  }
  add_devices(graph, timeline, result);
  return result;
}

} // namespace stagecraft
