// A timeline as a picture of text: a line per device, tasks to scale.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

struct PictureOptions {
  int width = 100;    ///< columns for the time axis, to the right of the names
  bool color = false; ///< kinds are shown by background colours
  int iteration = 0;  ///< the first iteration drawn; time counts from its first task
  int iterations = 1; ///< number of iterations drawn
  double until = 0;   ///< right edge in seconds, so that several pictures can share a scale; 0: the end of the run
  bool plain_numbers = false; ///< times without unit, drawn with a whole number of columns per unit if possible
};

/// Draws a line per device of TaskGraph::devices, whose names are given in that order, then a time axis and a legend.
/// "F3" is the forward pass of micro-batch 3, "F3.1" that of the device's second stage, if it has several. A column
/// shows what fills most of it, and is not idle if a short task would vanish otherwise.
std::string ascii_timeline(const TaskGraph& graph, const Timeline& timeline,
                           const std::vector<std::string>& device_names, const PictureOptions& options);

} // namespace stagecraft
