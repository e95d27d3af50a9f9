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
  /// `stored` has the keys of all points that the results have; `engine` as in evaluate(). All but the engine must
  /// stay.
  SweepWorker(SweepPoints& points, const KeyFilter& stored, const SweepShard& shard, std::string engine)
      : points_(points), stored_(stored), shard_(shard), engine_(std::move(engine)) {}

  /// Some first part of a task, for about a tenth of a second. What fails is a point with its reason; only a crash is
  /// none.
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
  std::vector<CombinationRuns> asked_; // of a slice
  std::vector<PointRow> rows_;         // of their runs, one after the other
};

} // namespace stagecraft
