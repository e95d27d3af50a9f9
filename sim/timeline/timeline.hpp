// When everything happened: start and finish of every task of every iteration.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft {

/// Times in seconds from the start of the first iteration. Entry iteration * tasks + task.
struct Timeline {
  int iterations = 1;
  std::vector<double> start, finish;
  int window = 1; ///< the last `window` iterations are one period of the steady state; figures are means over them

  /// When the last task of the last iteration finished; 0 if there is none.
  double end() const { return finish.empty() ? 0 : *std::max_element(finish.begin(), finish.end()); }
};

} // namespace stagecraft
