// The file of a real run: what ran, where and how, and when every task ran. docs/formats/run.md.
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

/// What was asked for, as names and files, so that it can be run again. The graph itself is in the record.
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
  bool shares_links = true; ///< transfers shared the links
  double time_scale = 1;    ///< time of the run / time that the model says
  double bandwidth_scale = 1;
  std::vector<std::pair<std::string, std::string>> conditions; ///< names and values, for readers
  Platform platform;                                           ///< names of devices, and links
  TaskGraph graph;
  Timeline timeline;
  std::optional<PartTimes> parts; ///< empty: not measured
  std::vector<RunRound> rounds;   ///< rounds that made the plan, where each was a real run; not read back

  /// When the last task ended.
  double makespan() const { return timeline.end(); }
  /// A number among the conditions; 0 where they do not have it.
  double condition(std::string_view name) const;
  /// By how much the latest computation that slept ended too late, from the conditions; 0 where they do not say.
  double latest_sleeper() const;
  /// Whether something else had the processor: a sleeper was late by more than 0.2 % of the run and by more than waking
  /// takes, or every one of several runs was disturbed.
  bool disturbed() const;
};

/// JSON, times as whole nanoseconds. Schema stagecraft/1.
std::string to_json(const RunRecord& record);

/// Reads it back. Throws InputError where it is malformed, or its times and its graph contradict each other.
RunRecord read_run_record(const std::filesystem::path& path);
/// The same with the text of `file`.
RunRecord read_run_record(std::string_view text, const std::string& file);

/// Whether a file looks like one.
bool is_run_record(const std::filesystem::path& path);

} // namespace stagecraft
