// Which kernels each layer kind runs, by their shapes: what calibrated devices know the times of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

LayerKernels convolution_kernels(const Layer&); ///< two-dimensional, not dilated, alike in both directions
LayerKernels linear_kernels(const Layer&);
LayerKernels matmul_kernels(const Layer&);
LayerKernels attention_kernels(const Layer&); ///< of a sequence with itself
LayerKernels batch_norm_kernels(const Layer&);
LayerKernels layer_norm_kernels(const Layer&);
LayerKernels relu_kernels(const Layer&);
LayerKernels gelu_kernels(const Layer&);
LayerKernels dropout_kernels(const Layer&);
LayerKernels add_kernels(const Layer&); ///< one addition per further term
LayerKernels copy_kernels(const Layer&);
LayerKernels softmax_kernels(const Layer&);
LayerKernels loss_kernels(const Layer&); ///< of a softmax over its input
LayerKernels embedding_kernels(const Layer&);

} // namespace stagecraft
