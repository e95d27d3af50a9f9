// Memory of each device over time: as JSON, as CSV to plot, and as a sentence.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/timeline/memory.hpp"

namespace stagecraft {

/// Memory of each device of TaskGraph::devices, with names in the same order.
struct MemoryReport {
  std::vector<std::string> devices;
  std::vector<MemoryUse> uses;
  std::vector<std::string> peak_tasks; ///< [device]: the task that starts when memory peaks, such as F3@1
};
/// Without `series`, the uses have neither steps nor stashes: enough for the sentence and for JSON without series.
MemoryReport report_memory(const TaskGraph& graph, const Timeline& timeline, std::vector<std::string> devices,
                           bool series);

/// A list with an object per device: its fixed parts and its peak; with `series` also its memory over time and its
/// stashes.
std::string memory_json(const MemoryReport& report, bool series);

/// A row per device and step; a step holds until the device's next one.
std::string memory_csv(const MemoryReport& report);

/// A sentence about the device with the highest peak.
std::string memory_sentence(const MemoryReport& report);

} // namespace stagecraft
