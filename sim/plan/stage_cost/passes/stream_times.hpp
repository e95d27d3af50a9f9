// Times of a stage whose kernels run on several streams of its device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "sim/plan/problem.hpp"
#include "sim/plan/stage_cost/passes/host_launches.hpp"

namespace stagecraft {

/// Seconds for one micro-batch; infinite if the device lacks a kernel.
struct StreamTimes {
  double forward = 0;
  double backward_input = 0, backward_weight = 0; ///< each alone
  double backward = 0;                            ///< both at once: weight gradients run beside input gradients
  AtRest rest;                                    ///< `backward` of both at once; not the step's
  Seconds ahead; ///< by how much the host has launched a backward before the device has computed it
};

/// What is asked for: planners need times alone.
enum class StreamFigures { times, with_rest };

/// Times of a stage's operators (ascending) on a device type, for a share of the micro-batch. With one stream, kernels
/// run one after another in the order of the graph.
StreamTimes stream_times(const Problem& problem, std::span<const OperatorId> operators, int type, double share,
                         int streams, StreamFigures figures = StreamFigures::times);

/// Seconds of a forward of one stage beside a backward of another, or of the same one for another micro-batch, on one
/// device: kernels of both share its streams. With one stream they follow one another. `with_weight`: the backward has
/// the gradients of weights too.
struct StagePart {
  std::span<const OperatorId> operators; ///< ascending
  double share = 1;                      ///< of the micro-batch
};
double seconds_side_by_side(const Problem& problem, const StagePart& forward, const StagePart& backward,
                            bool with_weight, int type, int streams);

} // namespace stagecraft
