// Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", section 2.1): keys and values of all heads are made of
// one short vector for each token, and one rotary key is shared by all heads. Equations: docs/formats/workload.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

/// Reads queries [s, heads * (d + r)], keys and values [s, heads * (d + e)] and the rotary key [s, r]; writes
/// [s, heads * e].
Shape latent_attention_shape(Layer&);
LayerCost latent_attention_cost(const Layer&);
/// Attention in heads as wide as the mean of keys and values, and what turns rotary parts and writes keys of full
/// width.
LayerKernels latent_attention_kernels(const Layer&);
Signature latent_attention_signature(const Layer&, std::int64_t samples);

} // namespace stagecraft
