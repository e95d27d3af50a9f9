// What a worker of a sweep does: finds the points of a task, and runs those that the results may lack.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/study/key_filter.hpp"
#include "sim/study/sweep_points.hpp"
#include "sim/study/sweep_task.hpp"

namespace stagecraft {

/// This part of all points is ours: those whose key modulo `count` is `index` - 1.
struct SweepShard {
  int index = 1, count = 1;

  bool has(const Digest& key) const;
};

class SweepWorker {
public:
  /// `stored` has the keys of all points that the results have; `engine` as in evaluate(). All but the engine must
  /// stay.
  SweepWorker(SweepPoints& points, const KeyFilter& stored, const SweepShard& shard, std::string engine)
      : points_(points), stored_(stored), shard_(shard), engine_(std::move(engine)) {}

  /// What fails is a point with its reason; only a crash is none.
  TaskResult work(const SweepTask& task);

private:
  void find(const SweepTask& task);
  void take(const SweepPoints::Opened& opened, std::uint32_t run, bool is_absent, std::vector<std::uint32_t>& runs);

  SweepPoints& points_;
  const KeyFilter& stored_;
  const SweepShard& shard_;
  std::string engine_;
  ScheduleCounts counts_;
  TaskResult result_;
  std::vector<CombinationRuns> asked_; // of a task
  std::vector<PointRow> rows_;         // of their runs, one after the other
};

} // namespace stagecraft
