// HEFT, heterogeneous earliest finish time (Topcuoglu, Hariri, Wu 2002), as a pure function of numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "sim/base/units.hpp"

namespace stagecraft {

/// Tasks in topological order, and the processors they may run on.
struct HeftTasks {
  std::vector<std::vector<double>> seconds; ///< [task][processor]; infinite: it cannot run there
  std::vector<std::vector<int>> predecessors, successors;
  std::function<double(int from, int to)> mean_transfer;                 ///< seconds, for the ranks
  std::function<double(int from, int to, int here, int there)> transfer; ///< seconds between different processors
  std::vector<Bytes> bytes;                                              ///< [task]: memory needed on any processor
  std::vector<Bytes> room;                                               ///< [processor]
};

struct HeftSchedule {
  std::vector<double> ranks;  ///< upward
  std::vector<int> processor; ///< [task]
  std::vector<double> finish; ///< [task]
  double makespan = 0;
  int unplaced = -1;       ///< the first task that no processor takes; those after it are not placed either
  bool crowded = false;    ///< some processor was passed over for lack of room
  std::vector<Bytes> held; ///< [processor], by the tasks placed
};

/// Takes the tasks by descending upward rank and gives each to the processor where it finishes earliest, in the first
/// gap between the tasks there that is long enough. Ties within 1e-9 go to the lower task and the lower processor.
/// O(tasks^2 processors).
HeftSchedule heft(const HeftTasks& tasks);

} // namespace stagecraft
