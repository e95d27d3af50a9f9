// A real run beside its prediction: the error overall and task by task, and what devices waited for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/validate/run_record.hpp"

namespace stagecraft {

/// The median and the 90 % quantile of absolute errors.
struct ErrorSpread {
  double median = 0, p90 = 0;
};

/// Errors of all tasks of one kind.
struct KindErrors {
  TaskKind kind = TaskKind::forward;
  int tasks = 0;             ///< over all iterations
  ErrorSpread start, finish; ///< as fractions of the run's makespan
  ErrorSpread duration;      ///< as fractions of the task's duration, for tasks that take any time
};

/// What a device waits for between two of its tasks.
enum class WaitCause { transfer, reduction, barrier, hand_over };
inline constexpr std::array<std::string_view, 4> kWaitCauses = {"transfer", "reduction", "barrier", "hand_over"};

/// Where a device's time went, over the whole run.
struct DeviceTime {
  double busy = 0;
  std::array<double, kWaitCauses.size()> waiting{}; ///< s by cause
};

struct RunAccuracy {
  double measured = 0;   ///< makespan of all iterations, s
  double retold = 0;     ///< makespan from the run's own durations, by program order and dependencies alone
  double predicted = 0;  ///< from the measured times of its parts, or from the model's where there are none
  double unmeasured = 0; ///< the same from the times that parts were asked to take
  double unshared = 0;   ///< the same where every transfer has its links to itself
  double constant = 0;   ///< from parts, each device slowed by one factor, even while others wait
  double alone = 0;      ///< from parts, no device slowing another
  double lockstep = 0;   ///< as predicted, but equal replicas that share links do not drift apart
  Timeline prediction;
  std::vector<KindErrors> kinds;
  std::vector<DeviceTime> device_measured, device_predicted; ///< [device of the graph]

  double retold_error() const { return retold / measured - 1; }
  double error() const { return predicted / measured - 1; }
};

/// Retells and predicts a run. Deterministic. std::runtime_error for a graph whose tasks wait for each other.
RunAccuracy accuracy_of(const RunRecord& record);

/// The draw of a run's graph that predicts it (lockstep.hpp), given with times of parts and their platform, where its
/// equal replicas meet on links and an exact replay takes longer; else nothing.
std::optional<TaskGraph> let_drift(const RunRecord& record, const TaskGraph& graph, const Platform& platform,
                                   double exact_seconds);

/// What each device waited for, judged by the last input of each task.
std::vector<DeviceTime> device_times(const TaskGraph& graph, const Timeline& timeline);

/// Schema stagecraft/1, docs/formats/run.md.
std::string to_json(const RunRecord& record, const RunAccuracy& accuracy);
/// Tables for a terminal, `width` columns for pictures of both timelines; 0: none.
std::string to_text(const RunRecord& record, const RunAccuracy& accuracy, bool color, int width);

} // namespace stagecraft
