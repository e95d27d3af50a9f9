// A timeline as a trace for chrome://tracing and Perfetto: docs/formats/trace.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/platform/platform.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// The trace in JSON, all iterations: a slice per computation and per link of a transfer, an arrow per transfer between
/// stages, and each device's memory. Times are rounded to nanoseconds.
std::string chrome_trace(const TaskGraph& graph, const Timeline& timeline, const Platform& platform);

} // namespace stagecraft
