// How long DAPPLE (Fan et al. 2021) expects an iteration of a synchronous pipeline to take, from times alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace stagecraft {

/// A stage of a pipeline, or the transfer between two: seconds of one micro-batch, and of reducing the stage's
/// gradients once per iteration.
struct PipelinePart {
  double forward = 0, backward = 0, reduction = 0;
};

/// The paper's latency. The pivot Q is the part whose bubbles are fewest: found from the last part on, s takes over
/// from Q if (M-1)(F_s+B_s) > (M-1)(F_Q+B_Q) + sum_{s<a<Q} (F_a+B_a). Then
///
///   L = sum_{s<=Q} F_s + (M-1)(F_Q+B_Q) + max_s (R_s + (s <= Q ? sum_{a=s..Q} B_a : -sum_{a=Q+1..s} B_a)).
///
/// It is 2 to 6 % too low for 1F1B over uneven stages. `parts` are stages and transfers in turn, at least one.
double dapple_latency(std::span<const PipelinePart> parts, int micro_batches);

/// The score by which the public planner ranks: (M-1) block + sum c + max_i max(0, R_i - i block), where c is forward +
/// backward of a part, block the largest c, and i counts stages, whose reductions hide behind the backward passes
/// before them.
double dapple_score(std::span<const PipelinePart> parts, int micro_batches);

} // namespace stagecraft
