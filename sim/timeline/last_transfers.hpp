// What the tasks of an iteration waited for last, and what of the gaps in passes their groups exchanged data in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// For each task of an iteration, the transfer or load among its inputs that finished last; -1: it has none. A join,
/// such as the end of an all-reduce, passes on the one that it waited for.
class LastTransfers {
public:
  /// `base` is the entry of the timeline with which the iteration begins.
  LastTransfers(const TaskGraph& graph, const Timeline& timeline, std::size_t base);

  TaskId operator[](TaskId task) const { return last_[task]; }

private:
  bool hand_on(TaskId task, TaskId transfer);
  void hand_on_over(const std::vector<TaskId>& joining);

  const std::int32_t* begin_;
  const TaskId* successors_;
  const double* finish_;
  std::vector<TaskId> of_;
  TaskId* last_; // data of of_
};

/// The part of a device's gap from `free` to the start of a task in the middle of a pass (Work::goes_on) in which its
/// group exchanges data, one exchange after another. The rest of the gap it waits for slower peers. `start` and
/// `finish` are those of the iteration's tasks.
double exchanged_part(const TaskGraph& graph, const LastTransfers& last, const double* start, const double* finish,
                      double free, TaskId task);

} // namespace stagecraft
