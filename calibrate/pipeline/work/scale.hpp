// Scales a cluster down: longer times and narrower links, in the same proportions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/schedule/task_graph/task_graph.hpp"

namespace stagecraft::pipeline {

/// Factors from the model's values to those of a run. Bytes are multiplied by `time` x `bandwidth`, so that transfers
/// keep their proportion to computations.
struct Scale {
  double time = 1;
  double bandwidth = 1;
};

/// Multiplies the bandwidth of every link by `bandwidth` and its latency by `time`.
Platform rescaled(Platform platform, const Scale& scale);

/// Multiplies computations and latencies by `time`, and transfers as Scale says, to whole bytes. Memory stays.
TaskGraph rescaled(TaskGraph graph, const Scale& scale);

} // namespace stagecraft::pipeline
