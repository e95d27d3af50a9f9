// What the parent of a sweep and its workers say to each other.
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

/// What a worker is to do: all points of the combinations first … end - 1 that are this sweep's, or these points.
struct SweepTask {
  std::uint64_t first = 0, end = 0;
  std::vector<Point> points;
  bool are_absent = false; ///< the results are known to lack them

  /// How many units there are: combinations, or points.
  std::uint64_t units() const { return points.empty() ? end - first : points.size(); }
  /// Parts with the first units, and with the others.
  std::pair<SweepTask, SweepTask> split(std::uint64_t units) const;
};

/// What came of a task: points done, and such as the results may have already.
struct TaskResult {
  struct Known {
    Point point;
    Digest key;
  };
  std::uint64_t units = 0; ///< that were dealt with, the first ones: a worker ends in time
  PackedPoints done;
  std::vector<Known> known;
  std::vector<Point> left; ///< of those units, for other workers: a combination may have many
};

std::string to_bytes(const SweepTask& task);
SweepTask task_from(const std::string& bytes);
std::string to_bytes(const TaskResult& result);
TaskResult task_result_from(const std::string& bytes);

} // namespace stagecraft
