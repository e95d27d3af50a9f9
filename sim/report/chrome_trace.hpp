// A timeline as a trace for chrome://tracing and Perfetto: docs/formats/trace.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "sim/platform/platform.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// The trace in JSON, all iterations: a slice per computation and per link of a transfer, an arrow per transfer between
/// stages, and each device's memory. Times are rounded to nanoseconds.
std::string chrome_trace(const TaskGraph& graph, const Timeline& timeline, const Platform& platform);

/// A timeline with the name of its processes: "measured".
struct NamedTimeline {
  std::string name;
  const Timeline& timeline;
};
/// One or more timelines of one graph, one above the other on the same axis.
std::string chrome_trace(const TaskGraph& graph, std::span<const NamedTimeline> timelines, const Platform& platform);

} // namespace stagecraft
