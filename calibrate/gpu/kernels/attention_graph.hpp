// Scaled dot-product attention as graphs for cuDNN: one operation where cuDNN has it, else parts that cuDNN fuses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/kernels/dnn_graph.hpp"
#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

/// The operands of a forward pass. The heads of a token are adjacent, as linear layers write them.
struct AttentionForward {
  DnnTensor q, k, v, o, stats, scale;
  DnnTensor minus_infinity; ///< id 0 without a mask
};

/// The operands of a backward pass besides those of forward; `sums`, `dq_sums` and the full gradients are scratch.
struct AttentionBackward {
  DnnTensor q, k, v, o, d_o, stats, scale, one, minus_infinity;
  DnnTensor sums, dq_sums, dq, dk, dv;
};

/// As one operation; needs cuDNN 9.13, and no mask.
AttentionForward add_attention(DnnGraph& graph, const Kernel& kernel);

/// From its parts: product, scale, mask, softmax, product.
AttentionForward add_attention_parts(DnnGraph& graph, const Kernel& kernel);

/// The gradients of q, k and v, from parts (Dao et al. 2022, algorithm 4).
AttentionBackward add_attention_backward(DnnGraph& graph, const Kernel& kernel);

/// The data type of a precision. cuDNN fuses neither fp32 nor tf32.
dnn::DataType data_type(Precision precision);

} // namespace stagecraft::gpu
