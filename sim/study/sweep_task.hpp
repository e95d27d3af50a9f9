// What the parent of a sweep and its workers say to each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/study/sweep_row.hpp"

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
};

/// What came of a task: points done, and such as the results may have already.
struct TaskResult {
  struct Known {
    Point point;
    Digest key;
  };
  PackedPoints done;
  std::vector<Known> known;
};

std::string to_bytes(const SweepTask& task);
SweepTask task_from(const std::string& bytes);
std::string to_bytes(const TaskResult& result);
TaskResult task_result_from(const std::string& bytes);

} // namespace stagecraft
