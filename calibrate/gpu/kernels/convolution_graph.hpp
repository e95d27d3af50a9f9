// A convolution, or one of its gradients, as a graph for cuDNN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/kernels/dnn_graph.hpp"
#include "calibrate/gpu/sweep/kernel.hpp"

namespace stagecraft::gpu {

/// The three tensors; the pass decides which of them is computed.
struct Convolution {
  DnnTensor image, filter, result;
};

Convolution add_convolution(DnnGraph& graph, const Kernel& kernel);

} // namespace stagecraft::gpu
