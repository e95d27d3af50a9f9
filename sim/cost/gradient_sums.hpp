// Gradients of weights that are added to the sums of earlier micro-batches, by the product that makes them or behind
// it. docs/model.md, "Sums of gradients".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sim/cost/cost_model.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// The same cost model with what the sums move; itself where the training says of neither way that it has it, or adds
/// up parts alone, since replicas reduce each micro-batch's. `model` must outlive it.
std::unique_ptr<CostModel> with_gradient_sums(std::unique_ptr<CostModel> cost, const ModelGraph& model,
                                              const Training& training);

} // namespace stagecraft
