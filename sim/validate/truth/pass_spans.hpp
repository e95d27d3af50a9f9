// How long the passes of a stage took in a replay, with what their tensor-parallel group exchanged within them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// Of each stage, the median over micro-batches, in s, from the first start to the last end: of forward; of backward
/// with what is recomputed for it; of the gradients of weights, where a schedule has them apart.
struct PassSpans {
  std::vector<double> forward, backward, weight; ///< [stage]
  double busy = 0;    ///< s of passes in the first iteration, of the device that has the most
  double longest = 0; ///< s from a device's first pass of that iteration to its last, the most of any device
};
PassSpans pass_spans(const TaskGraph& graph, const Timeline& timeline, int stages);

} // namespace stagecraft
