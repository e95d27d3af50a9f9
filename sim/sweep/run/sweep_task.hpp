// What a sweep's parent process and its workers send each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/sweep/store/sweep_row.hpp"

namespace stagecraft {

/// A run of a combination.
struct Point {
  std::uint64_t number = 0; ///< of the combination
  std::uint32_t run = 0;    ///< index into scenarios_of() the combination's study
};

/// What a worker is to do: all of this shard's points of the combinations first … end - 1, or these points.
struct SweepTask {
  std::uint64_t first = 0, end = 0;
  std::vector<Point> points;
  bool are_absent = false; ///< the results are known to lack them

  /// How many units there are: combinations, or points.
  std::uint64_t units() const { return points.empty() ? end - first : points.size(); }
  /// The task in two: its first units, and the others.
  std::pair<SweepTask, SweepTask> split(std::uint64_t units) const;
};

/// The result of a task: points done, and points that the results may already have.
struct TaskResult {
  struct Known {
    Point point;
    Digest key;
  };
  std::uint64_t units = 0; ///< done, from the first on: a worker stops when its time is up
  PackedPoints done;
  std::vector<Known> known;
  std::vector<Point> left; ///< points of those units left for other workers: a combination may have many
};

std::string to_bytes(const SweepTask& task);
SweepTask task_from(const std::string& bytes);
std::string to_bytes(const TaskResult& result);
TaskResult task_result_from(const std::string& bytes);

} // namespace stagecraft
