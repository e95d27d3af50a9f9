// The kernels that each layer kind runs, with their shapes; calibrated devices know the times of such kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

LayerKernels convolution_kernels(const Layer&); ///< only two-dimensional, not dilated, and symmetric
LayerKernels linear_kernels(const Layer&);
LayerKernels matmul_kernels(const Layer&);
LayerKernels attention_kernels(const Layer&); ///< self-attention only, without a window that hides keys
LayerKernels batch_norm_kernels(const Layer&);
LayerKernels layer_norm_kernels(const Layer&);
LayerKernels rms_norm_kernels(const Layer&);
LayerKernels query_key_norm_kernels(const Layer&);
LayerKernels rotary_kernels(const Layer&);
LayerKernels relu_kernels(const Layer&);
LayerKernels gelu_kernels(const Layer&);
LayerKernels gated_kernels(const Layer&);
LayerKernels dropout_kernels(const Layer&);
LayerKernels add_kernels(const Layer&); ///< n terms: n - 1 additions
LayerKernels copy_kernels(const Layer&);
LayerKernels softmax_kernels(const Layer&);
LayerKernels loss_kernels(const Layer&); ///< includes the softmax of its input
LayerKernels embedding_kernels(const Layer&);

} // namespace stagecraft
