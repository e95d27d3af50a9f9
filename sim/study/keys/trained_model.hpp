// A model as a training computes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sim/workload/model_graph.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// The model with the bytes of its frozen parameters, which follow from the precision, with the kernels of attention
/// and of the loss and the layout of images that the training names, with captured graphs, and with products in 8 bits;
/// the model itself where nothing of that changes it.
std::shared_ptr<const ModelGraph> trained_model(std::shared_ptr<const ModelGraph> model, const Training& training);

} // namespace stagecraft
