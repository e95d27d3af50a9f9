// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline/last_transfers.hpp"

#include <algorithm>

#include "sim/base/format/end_of_equals.hpp"

namespace stagecraft {

LastTransfers::LastTransfers(const TaskGraph& graph, const Timeline& timeline, std::size_t base)
    : begin_(graph.successor_begin.data()), successors_(graph.successors.data()),
      finish_(timeline.finish.data() + base), of_(graph.work.size(), -1), last_(of_.data()) {
  const std::int32_t* const works = graph.work.data();
  std::vector<TaskId> joining;
  for (TaskId task = 0, tasks = graph.tasks(); task < tasks;) { // run by run of tasks of one work
    const std::int32_t same = works[task];
    const Work& work = graph.works[same];
    const auto end = static_cast<TaskId>(end_of_equals(works + task, works + tasks) - works);
    for (; !work.computes() && task < end; ++task) {
      work.transfers() || work.loads() ? static_cast<void>(hand_on(task, task)) : joining.push_back(task);
    }
    task = end;
  }
  hand_on_over(joining);
}

bool LastTransfers::hand_on(TaskId task, TaskId transfer) {
  bool changed = false;
  for (std::int32_t at = begin_[task], end = begin_[task + 1]; at < end; ++at) {
    TaskId& last = last_[successors_[at]];
    if (last < 0 || finish_[transfer] > finish_[last]) {
      last = transfer;
      changed = true;
    }
  }
  return changed;
}

// Passes on through joins that follow one another, until nothing changes.
[[gnu::noinline]] void LastTransfers::hand_on_over(const std::vector<TaskId>& joining) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const TaskId join : joining) {
      changed = (last_[join] >= 0 && hand_on(join, last_[join])) || changed;
    }
  }
}

double exchanged_part(const TaskGraph& graph, const LastTransfers& last, const double* start, const double* finish,
                      double free, TaskId task) {
  double exchanged = 0, until = start[task];
  TaskId exchange = last[task];
  while (exchange >= 0 && until > free && graph.works[graph.work[exchange]].kind == TaskKind::exchange) {
    const double from = std::max(free, start[exchange]);
    exchanged += std::max(0.0, std::min(until, finish[exchange]) - from);
    until = std::min(until, from);
    exchange = last[exchange];
  }
  return exchanged;
}

} // namespace stagecraft
