// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/run/sweep_worker.hpp"

#include <algorithm>

#include "sim/base/system/clock.hpp"

namespace stagecraft {

TaskResult SweepWorker::work(const SweepTask& task) {
  constexpr double kEnough = 0.1;     // seconds
  constexpr std::size_t kMost = 2000; // points: their rows have room in a pipe
  const Clock::time_point start = Clock::now();
  result_ = {};
  while (result_.units < task.units() && result_.done.size() + result_.known.size() < kMost &&
         seconds_since(start) < kEnough) {
    result_.units = find(task, result_.units);
    run();
  }
  return std::move(result_);
}

// Finds the points of a slice, starting at a unit; returns the unit after it. Runs of a combination that do not fit
// into the slice are left for other workers.
std::uint64_t SweepWorker::find(const SweepTask& task, std::uint64_t unit) {
  constexpr std::uint64_t kMostUnits = 1000; // units looked at, as they may have no points at all
  asked_.clear();
  rows_.clear();
  const std::uint64_t end = std::min(task.units(), unit + kMostUnits);
  for (; unit < end && rows_.size() < slice_; ++unit) {
    const std::uint64_t number = task.points.empty() ? task.first + unit : task.points[unit].number;
    const std::optional<SweepPoints::Opened> opened = points_.open(number);
    if (!opened) {
      continue;
    }
    std::vector<std::uint32_t> runs;
    if (task.points.empty()) {
      std::uint32_t run = 0;
      for (; run < opened->points() && runs.size() < slice_; ++run) {
        take(*opened, run, task.are_absent, runs);
      }
      for (; run < opened->points(); ++run) {
        result_.left.push_back({number, run});
      }
    } else {
      take(*opened, task.points[unit].run, task.are_absent, runs);
      for (; unit + 1 < end && task.points[unit + 1].number == number && runs.size() < slice_; ++unit) {
        take(*opened, task.points[unit + 1].run, task.are_absent, runs);
      }
    }
    asked_.push_back({opened->combination, std::move(runs)});
  }
  return unit;
}

// Slices grow while they are quick: an engine that is slow to start is started once for each slice.
void SweepWorker::run() {
  constexpr std::size_t kMostTogether = 256;
  constexpr double kQuick = 0.02, kSlow = 0.05; // seconds
  const Clock::time_point start = Clock::now();
  std::vector<PointResult> results = evaluate(points_.inputs(), engine_, asked_, counts_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    PointRow& row = rows_[i];
    row.status = results[i].status;
    row.order = std::move(results[i].order);
    row.reason = std::move(results[i].reason);
    row.figures = results[i].figures;
    result_.done.add(row);
  }
  const double seconds = seconds_since(start);
  if (seconds > kSlow) {
    slice_ = std::max<std::size_t>(1, slice_ / 2);
  } else if (seconds < kQuick && rows_.size() >= slice_) {
    slice_ = std::min(kMostTogether, 2 * slice_);
  }
}

void SweepWorker::take(const SweepPoints::Opened& opened, std::uint32_t run, bool is_absent,
                       std::vector<std::uint32_t>& runs) {
  std::optional<PointRow> row = points_.row(opened, run, engine_);
  if (!row || !shard_.has(row->key)) {
    return;
  }
  if (!is_absent && stored_.may_have(row->key)) {
    result_.known.push_back({{row->number, run}, row->key});
  } else if (row->status == PointStatus::failed) {
    result_.done.add(*row);
  } else {
    rows_.push_back(std::move(*row));
    runs.push_back(run);
  }
}

} // namespace stagecraft
