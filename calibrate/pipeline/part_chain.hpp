// What measures parts alone: a graph in which one thing happens at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

/// A chain: computation, transfer, computation, … The transfers go the ways of a run. Computations are those of the run
/// where they are named, else they only take the time given.
class PartChain {
public:
  /// `computation`: what each computation is said to take. The setting outlives it.
  PartChain(const Setting& setting, Seconds computation);

  struct Transfer {
    TaskId before, transfer, after; ///< what computes, is sent, and waits for it
  };
  /// Adds one transfer of a way, and before and after it a work of the run on its ends, or none. Where its leg ends at
  /// no device the sender itself waits for it, with no work.
  Transfer add(int way, double bytes, std::int32_t before = -1, std::int32_t after = -1);
  /// Adds a computation on a device of the graph: a work of the run, or none.
  TaskId compute(int device, std::int32_t work = -1);

  /// The graph of all that was added.
  const TaskGraph& finish();
  const Ways& ways() const { return ways_; }
  /// [work of the graph]: that of the run which it is, or -1.
  const std::vector<std::int32_t>& origins() const { return origins_; }

private:
  std::int32_t add_work(const Work& work, int way, std::int32_t origin);
  TaskId add_task(std::int32_t work);

  const Setting& setting_;
  Seconds computation_;
  TaskGraph graph_;
  Ways ways_;
  std::vector<std::vector<TaskId>> programs_;
  std::vector<std::int32_t> origins_;
  std::map<std::pair<int, std::int32_t>, std::int32_t> computations_; ///< by device and origin: the work
  std::vector<int> receivers_; ///< [vertex]: index of a device of the graph, or -1
};

/// A line through the medians of what equal sizes took, seconds by bytes, with the least relative errors; of one size a
/// latency.
PathCost fit_path_cost(const std::map<double, std::vector<double>>& measured);

} // namespace stagecraft::pipeline
