// The file of a real run: what ran, where and how, and when every task did. docs/formats/run.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/result/run.hpp"
#include "sim/timeline/part_times.hpp"

namespace stagecraft {

/// What was asked for, in words and files, so that it can be asked for again. The graph itself is in the record.
struct RunInputs {
  std::string model, platform, strategy, schedule;
  int global_batch = 1, micro_batches = 1;
  std::string plan;   ///< a plan file
  std::string orders; ///< a schedule file, as the ranks ran it
};

/// A run as it was carried out. Times, bytes and bandwidths are those of the run, at its scale.
struct RunRecord {
  RunInputs inputs;
  std::string backend;
  bool shares_links = true; ///< transfers met each other on the links
  double time_scale = 1;    ///< of the run over what the model says
  double bandwidth_scale = 1;
  std::vector<std::pair<std::string, std::string>> conditions; ///< names and values, for readers
  Platform platform;                                           ///< names of devices; links
  TaskGraph graph;
  Timeline timeline;
  std::optional<PartTimes> parts; ///< nothing: not measured
  std::vector<RunRound> rounds;   ///< that the plan came from, where each was a real run; not read back

  /// When the last task ended.
  double makespan() const { return timeline.end(); }
  /// A number among the conditions; 0 where they do not say it.
  double condition(std::string_view name) const;
  /// By how much the latest computation that slept ended too late, as the conditions say; 0 where they do not.
  double latest_sleeper() const;
  /// Whether that is more than 0.2 % of the run, and than any sleeper needs to wake, or whether every run of several
  /// was disturbed: something else had the processor.
  bool disturbed() const;
};

/// JSON, times as whole nanoseconds. Schema stagecraft/1.
std::string to_json(const RunRecord& record);

/// Reads it back. Throws InputError where it is malformed, or its times and its graph contradict each other.
RunRecord read_run_record(const std::filesystem::path& path);

/// Whether a file looks like one.
bool is_run_record(const std::filesystem::path& path);

} // namespace stagecraft
