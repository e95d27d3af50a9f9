// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sweep_worker.hpp"

namespace stagecraft {

bool SweepShard::has(const Digest& key) const {
  constexpr int kByte = 256;
  return (key.bytes[0] * kByte + key.bytes[1]) % count == index - 1;
}

TaskResult SweepWorker::work(const SweepTask& task) {
  result_ = {};
  asked_.clear();
  rows_.clear();
  find(task);
  std::vector<PointResult> results = evaluate(points_.inputs(), engine_, asked_, counts_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    PointRow& row = rows_[i];
    row.status = results[i].status;
    row.order = std::move(results[i].order);
    row.reason = std::move(results[i].reason);
    row.figures = results[i].figures;
    result_.done.add(row);
  }
  return std::move(result_);
}

void SweepWorker::find(const SweepTask& task) {
  for (std::uint64_t number = task.first; number < task.end; ++number) {
    if (std::optional<SweepPoints::Opened> opened = points_.open(number)) {
      std::vector<std::uint32_t> runs;
      for (std::uint32_t run = 0; run < opened->points(); ++run) {
        take(*opened, run, task.are_absent, runs);
      }
      asked_.push_back({std::move(opened->combination), std::move(runs)});
    }
  }
  for (auto first = task.points.begin(); first != task.points.end();) {
    std::optional<SweepPoints::Opened> opened = points_.open(first->number);
    check(opened.has_value(), "a combination that a condition rules out was given out");
    std::vector<std::uint32_t> runs;
    auto point = first;
    for (; point != task.points.end() && point->number == first->number; ++point) {
      take(*opened, point->run, task.are_absent, runs);
    }
    asked_.push_back({std::move(opened->combination), std::move(runs)});
    first = point;
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
