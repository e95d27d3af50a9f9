// Gradients of weights that a product adds to the sums of earlier micro-batches. docs/model.md, "Sums of gradients".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sim/cost/cost_model.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// The same cost model with what the sums move beside the products; itself where the training does not fuse the two.
/// `model` must outlive it.
std::unique_ptr<CostModel> with_gradient_sums(std::unique_ptr<CostModel> cost, const ModelGraph& model,
                                              const Training& training);

} // namespace stagecraft
