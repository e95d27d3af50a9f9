// Scaled dot-product attention as graphs for cuDNN: one operation where it is known, else its parts, which cuDNN fuses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/kernels/dnn_graph.hpp"
#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

/// The operands of a forward pass. Heads lie within a token, as linear layers leave them.
struct AttentionForward {
  DnnTensor q, k, v, o, stats, scale;
  DnnTensor minus_infinity; ///< id 0 where nothing is masked
};

/// Those of a backward pass beyond them; `sums`, `dq_sums` and the full gradients are scratch.
struct AttentionBackward {
  DnnTensor q, k, v, o, d_o, stats, scale, one, minus_infinity;
  DnnTensor sums, dq_sums, dq, dk, dv;
};

/// As one operation; cuDNN of 9.13 and later, without mask.
AttentionForward add_attention(DnnGraph& graph, const Kernel& kernel);

/// From its parts: product, scale, mask, softmax, product.
AttentionForward add_attention_parts(DnnGraph& graph, const Kernel& kernel);

/// The gradients of q, k and v from its parts (Dao et al. 2022, algorithm 4).
AttentionBackward add_attention_backward(DnnGraph& graph, const Kernel& kernel);

/// fp32 and tf32 are not among what cuDNN fuses.
dnn::DataType data_type(Precision precision);

} // namespace stagecraft::gpu
