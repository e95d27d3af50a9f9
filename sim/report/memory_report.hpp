// Memory of each device over time: as JSON, as a table to plot, and in a line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/timeline/memory.hpp"

namespace stagecraft {

/// Memory of every device of TaskGraph::devices, named in that order.
struct MemoryReport {
  std::vector<std::string> devices;
  std::vector<MemoryUse> uses;
  std::vector<std::string> peak_tasks; ///< that start when memory peaks, as F3@1
};
MemoryReport report_memory(const TaskGraph& graph, const Timeline& timeline, std::vector<std::string> devices);

/// A list with an object per device: its fixed parts and its peak, and if asked for its series and stashes.
std::string memory_json(const MemoryReport& report, bool series);

/// A row per device and step, which holds until the device's next one.
std::string memory_csv(const MemoryReport& report);

/// A sentence on the device that holds most at its peak.
std::string memory_sentence(const MemoryReport& report);

} // namespace stagecraft
