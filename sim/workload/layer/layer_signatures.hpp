// The signature of each layer kind: how its tensors may be divided. A sample is the first dimension of every tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/layer/layers.hpp"
#include "sim/workload/signature.hpp"

namespace stagecraft {

/// Inputs have no makers yet. `samples` are those of a micro-batch, over all ranks.
Signature linear_signature(const Layer&, std::int64_t samples);
Signature normalization_signature(const Layer&, std::int64_t samples, int parameters); ///< needs all features at once
Signature layer_norm_signature(const Layer&, std::int64_t samples);
Signature rms_norm_signature(const Layer&, std::int64_t samples);
Signature softmax_signature(const Layer&, std::int64_t samples);
Signature query_key_norm_signature(const Layer&, std::int64_t samples); ///< queries, keys and values side by side
Signature rotary_signature(const Layer&, std::int64_t samples);         ///< queries, keys and values side by side
Signature elementwise_signature(const Layer&, std::int64_t samples);    ///< all shapes alike
Signature add_signature(const Layer&, std::int64_t samples);            ///< likewise, passes gradients on as they are
Signature gated_signature(const Layer&, std::int64_t samples);          ///< gates and values side by side
Signature attention_signature(const Layer&, std::int64_t samples); ///< queries, keys and values side by side, or apart
Signature slice_signature(const Layer&, std::int64_t samples);
Signature concat_signature(const Layer&, std::int64_t samples);
Signature embedding_signature(const Layer&, std::int64_t samples);     ///< vocabulary, positions, types
Signature cross_entropy_signature(const Layer&, std::int64_t samples); ///< of logits, with labels as data

} // namespace stagecraft
