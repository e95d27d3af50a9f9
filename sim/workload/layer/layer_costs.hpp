// What each layer kind costs: one function per equation of docs/formats/workload.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

LayerCost dense_cost(const Layer&);  ///< convolution and linear: one product with a weight
LayerCost linear_cost(const Layer&); ///< the same with an adapter of low rank, if there is one
LayerCost transposed_convolution_cost(const Layer&);
LayerCost batch_norm_cost(const Layer&);
LayerCost instance_norm_cost(const Layer&); ///< of each sample's channels, with or without a weight and a bias of each
LayerCost layer_norm_cost(const Layer&);
LayerCost rms_norm_cost(const Layer&);
LayerCost query_key_norm_cost(const Layer&);
LayerCost response_norm_cost(const Layer&); ///< local response normalization
LayerCost in_place_cost(const Layer&);      ///< activations whose gradient follows from the output
LayerCost activation_cost(const Layer&);    ///< activations whose gradient needs the input
LayerCost leaky_relu_cost(const Layer&);    ///< the same, of one operation an element
LayerCost gated_cost(const Layer&);         ///< an activation of one half times the other half
LayerCost rotary_cost(const Layer&);
LayerCost dropout_cost(const Layer&);
LayerCost channel_dropout_cost(const Layer&); ///< drops whole channels
LayerCost max_pool_cost(const Layer&);
LayerCost average_cost(const Layer&);
LayerCost average_pool_cost(const Layer&);
LayerCost upsample_cost(const Layer&); ///< each pixel several times
LayerCost add_cost(const Layer&);
LayerCost product_cost(const Layer&); ///< element-wise product
LayerCost copy_cost(const Layer&);    ///< concatenation, transpose, slice
LayerCost view_cost(const Layer&);
LayerCost softmax_cost(const Layer&);
LayerCost cross_entropy_cost(const Layer&);
LayerCost embedding_cost(const Layer&);
LayerCost attention_cost(const Layer&);
LayerCost lstm_cost(const Layer&);
LayerCost matmul_cost(const Layer&); ///< product of two activations

} // namespace stagecraft
