// Times of a stage whose kernels run on several streams of its device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sim/plan/problem.hpp"

namespace stagecraft {

/// Seconds for one micro-batch; infinite if the device lacks a kernel.
struct StreamTimes {
  double forward = 0;
  double backward_input = 0, backward_weight = 0; ///< each alone
  double backward = 0;                            ///< both at once: weight gradients run beside input gradients
};

/// Times of a stage's operators (ascending) on a device type, for a share of the micro-batch. With one stream, kernels
/// run one after another in the order of the graph.
StreamTimes stream_times(const Problem& problem, std::span<const OperatorId> operators, int type, double share,
                         int streams);

} // namespace stagecraft
