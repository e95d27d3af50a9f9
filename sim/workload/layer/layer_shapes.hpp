// The shape of each layer kind's output, from its inputs and attributes. Shapes that do not fit throw InputError.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

Shape convolution_shape(Layer&);
Shape transposed_convolution_shape(Layer&);
Shape upsample_shape(Layer&); ///< layer.stride is by how much each side grows
Shape pool_shape(Layer&);
Shape global_pool_shape(Layer&);
Shape adaptive_pool_shape(Layer&);
Shape linear_shape(Layer&);
Shape image_shape(Layer&);    ///< the input's shape; its first dimension counts channels
Shape same_shape(Layer&);     ///< the input's shape; its last dimension counts features
Shape rms_norm_shape(Layer&); ///< the same; refuses groups that do not divide the features
Shape broadcast_shape(Layer&);
Shape concat_shape(Layer&);
Shape flatten_shape(Layer&);
Shape reshape_shape(Layer&);
Shape transpose_shape(Layer&);
Shape slice_shape(Layer&);
Shape scalar_shape(Layer&);
Shape embedding_shape(Layer&);
Shape attention_shape(Layer&);
/// The input's shape: queries, keys and values side by side. features_in is the width of a head, features what is
/// normalized or turned for each position.
Shape query_key_norm_shape(Layer&);
Shape rotary_shape(Layer&);
Shape gated_shape(Layer&); ///< half of the input's features
Shape lstm_shape(Layer&);
Shape matmul_shape(Layer&);

} // namespace stagecraft
