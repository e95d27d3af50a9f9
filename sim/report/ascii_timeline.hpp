// A timeline as a picture of text: a line per device, tasks to scale.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

struct PictureOptions {
  int width = 100;            ///< columns for the time; the names stand to the left of them
  bool color = false;         ///< kinds as background colours
  int iteration = 0;          ///< the first one drawn; time counts from its first task
  int iterations = 1;         ///< drawn
  double until = 0;           ///< right edge in seconds, so that pictures can share a scale; 0: the end of the run
  bool plain_numbers = false; ///< times without unit, drawn with a whole number of columns per unit where that fits
};

/// A line per device of TaskGraph::devices, whose names are given in that order, then a time axis and a
/// legend. "F3" is the forward pass of micro-batch 3; "F3.1" that of the device's second stage, where it has several. A
/// column shows what fills most of it, and idle only where no short task would vanish by that.
std::string ascii_timeline(const TaskGraph& graph, const Timeline& timeline,
                           const std::vector<std::string>& device_names, const PictureOptions& options);

} // namespace stagecraft
