// How sure the period of iterations that follow one another is, and over which of them it is best measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// What a timeline says of its period.
struct Steadiness {
  int iterations = 1; ///< the first ones, in which no device has run out of work yet
  int window = 1;     ///< how many of them, the last ones, tell the period best
  double spread = 1;  ///< how far apart its bounds are, as a fraction of the upper one; 0 where all tasks keep one pace
};

/// The largest spread with which a period counts as steady.
inline constexpr double kSteady = 1e-4;

/// The shortest window of whole cycles of the graph, of at least 4 iterations, over which the period is steady; the one
/// with the least spread if there is none. Over a window the period lies between the least and the most by which a task
/// advances from iteration to iteration, as in every system of "start when all inputs are there"; and no period is
/// shorter than the work of a device. docs/model.md, "Engines".
Steadiness find_steady(const TaskGraph& graph, const Timeline& timeline);

/// The first iterations of a timeline.
void cut_short(const TaskGraph& graph, Timeline& timeline, int iterations);

} // namespace stagecraft
