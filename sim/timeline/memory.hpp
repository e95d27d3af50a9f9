// Memory of a device over time, part by part (docs/model.md, "Memory").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// What a device holds from `time` on, until the next step.
struct MemoryStep {
  double time = 0; ///< seconds from the start of the first iteration
  Bytes bytes;     ///< everything, fixed memory included
  Bytes stashed;   ///< activations of the micro-batches in flight
  Bytes recompute; ///< activations restored by recompute
  Bytes fragments; ///< what the allocator holds beyond the tensors in it
  int in_flight = 0;
};

/// What one micro-batch keeps of one stage, from its forward until its backward.
struct Stash {
  std::int32_t stage = 0, micro_batch = 0;
  Bytes bytes;
  double from = 0, to = 0; ///< seconds; `to` is the end of the run if backward comes after it
};

/// The first step with the most bytes.
struct MemoryPeak : MemoryStep {
  TaskId task = 0; ///< the task that starts then
};

struct MemoryUse {
  FixedMemory fixed;
  Bytes context;                 ///< of the framework
  std::vector<MemoryStep> steps; ///< in time order, over all iterations
  std::vector<Stash> stashes;    ///< in order of `from`
  MemoryPeak peak;
};

/// Memory of the device at an index of TaskGraph::devices. O(tasks of the device).
MemoryUse memory_over_time(const TaskGraph& graph, const Timeline& timeline, std::size_t device);

/// The same without its steps and stashes, which take 100 bytes for each task of the device.
MemoryUse peak_memory(const TaskGraph& graph, const Timeline& timeline, std::size_t device);

/// Activations that a device holds when an iteration begins, of forwards that ran before their own iteration.
Bytes held_at_start(const TaskGraph& graph, std::size_t device);

} // namespace stagecraft
