// How the loss over words is computed (docs/model.md, "The loss").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// What a pass of a loss does for each score.
struct LossPass {
  double moved = 0; ///< bytes read and written
  int kernels = 0;
};

struct LossRow {
  std::string_view name, help;
  double bytes = 0; ///< held for each score from the forward to the backward; 0: one of the training's precision
  LossPass forward{}, backward{}; ///< nothing moved: as the model counts them
};
/// `single`: PyTorch's cross_entropy(scores.float()). Held at most, in backward: the result of the logarithmic softmax,
/// its gradient and that of the choice, in fp32; the gradient in 16 bits is made when the first and the last are gone.
/// Moved by forward: cast (2 + 4), softmax (4 + 4), choice; by backward: gradient of the choice (4), of the softmax
/// (4 + 4 + 4), cast (4 + 2).
/// `single-parallel`: PyTorch's loss_parallel() (torch/distributed/tensor/parallel/loss.py). Held at most, in backward:
/// the logarithmic softmax, the gradient of the choice, the exponential and their sum, in fp32. Moved by forward: cast
/// (2 + 4), maximum (4), difference (4 + 4), exponential (4 + 4), sum (4), difference (4 + 4); by backward: zeros (4),
/// exponential (4 + 4), sum (4 + 4 + 4), product (4 + 4), cast (4 + 2).
/// `megatron`: Megatron-LM's core/tensor_parallel/cross_entropy.py, which keeps the softmax in fp32 (Korthikanti et al.
/// 2023, section 4.2.2: 4 sbv) and makes its gradient in place. Moved by forward: cast (2 + 4), maximum (4), difference
/// (4 + 4), exponential (4 + 4), sum (4), quotient (4 + 4); by backward: product (4 + 4), cast (4 + 2).
inline constexpr std::array kLosses = {
    LossRow{"fused", "one kernel, which keeps the probabilities in the training's precision"},
    LossRow{"single",
            "scores are cast to fp32, and each step of the loss is a kernel of its own",
            4 + 4 + 4,
            {18, 4},
            {18, 4}},
    LossRow{"single-scores-kept",
            "the same, and the caller holds the scores until backward ends",
            4 + 4 + 4 + 2,
            {18, 4},
            {18, 4}},
    LossRow{"single-parallel",
            "PyTorch's loss_parallel over a divided vocabulary, in fp32, a kernel for each step",
            4 + 4 + 4 + 4,
            {38, 6},
            {38, 5}},
    LossRow{
        "megatron", "Megatron-LM's over a divided vocabulary, in fp32, a kernel for each step", 4, {38, 6}, {14, 2}},
};

/// The loss as ranks compute it that divide the scores among them by PyTorch's loss_parallel: `single-parallel` in
/// place of `single`, else the same.
const LossRow& as_divided(const LossRow& row);

/// The model with losses over words as the row says, where scores have `element` bytes.
ModelGraph with_loss(ModelGraph model, const LossRow& row, double element);

} // namespace stagecraft
