// What a worker of a sweep does: finds the points of a task, and runs those that the results may lack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/sweep/run/sweep_points.hpp"
#include "sim/sweep/run/sweep_task.hpp"
#include "sim/sweep/store/key_filter.hpp"

namespace stagecraft {

class SweepWorker {
public:
  /// `stored` has the keys of all points in the results; `engine` as in evaluate(). All arguments but the engine must
  /// outlive it.
  SweepWorker(SweepPoints& points, const KeyFilter& stored, const SweepShard& shard, std::string engine)
      : points_(points), stored_(stored), shard_(shard), engine_(std::move(engine)) {}

  /// Does the first part of a task, for about a tenth of a second. A failure is a point with its reason; only a crash
  /// gives no point.
  TaskResult work(const SweepTask& task);

private:
  std::uint64_t find(const SweepTask& task, std::uint64_t unit);
  void take(const SweepPoints::Opened& opened, std::uint32_t run, bool is_absent, std::vector<std::uint32_t>& runs);
  void run();

  SweepPoints& points_;
  const KeyFilter& stored_;
  const SweepShard& shard_;
  std::string engine_;
  ScheduleCounts counts_;
  std::size_t slice_ = 4; // points that are run together
  TaskResult result_;
  std::vector<CombinationRuns> asked_; // the runs of a slice
  std::vector<PointRow> rows_;         // the rows of those runs, one after the other
};

} // namespace stagecraft
