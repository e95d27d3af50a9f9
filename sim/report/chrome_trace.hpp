// A timeline as a trace for chrome://tracing and Perfetto: docs/formats/trace.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "sim/platform/platform.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// The trace of all iterations in JSON: a slice for each computation, for each device or group that takes part in a
/// communication, and for each link of it; an arrow for each transfer between stages, and the memory of each device.
/// Times are rounded to nanoseconds.
std::string chrome_trace(const TaskGraph& graph, const Timeline& timeline, const Platform& platform);

/// A timeline with the name that its processes get, such as "measured".
struct NamedTimeline {
  std::string name;
  const Timeline& timeline;
};
/// One or more timelines of one graph, one above another on the same time axis.
std::string chrome_trace(const TaskGraph& graph, std::span<const NamedTimeline> timelines, const Platform& platform);

/// What a reader should know of a trace of this graph: that it shows exchanges as parts of computations, and how to see
/// each; "" where it does not.
std::string trace_remark(const TaskGraph& graph);

} // namespace stagecraft
