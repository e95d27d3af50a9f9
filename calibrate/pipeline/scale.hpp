// A cluster made smaller: times longer, links narrower, and everything in the same proportions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft::pipeline {

/// Of what a run's record says over what the model says. Bytes follow: `time` x `bandwidth`, so that a transfer keeps
/// its proportion to a computation.
struct Scale {
  double time = 1;
  double bandwidth = 1;
};

/// Every link `bandwidth` times as wide and its latency `time` times as long.
Platform rescaled(Platform platform, const Scale& scale);

/// Every computation and latency `time` times as long, every transfer of as many whole bytes as follow. Memory stays.
TaskGraph rescaled(TaskGraph graph, const Scale& scale);

} // namespace stagecraft::pipeline
