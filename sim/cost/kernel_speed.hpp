// Kernels within a training run, slower than the fits to measurements of each alone. docs/model.md, "Kernels in a run".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "sim/cost/cost_model.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// The same cost model at the speeds that the training states; itself where they are 1. `model` must outlive it.
std::unique_ptr<CostModel> at_kernel_speed(std::unique_ptr<CostModel> cost, const ModelGraph& model,
                                           const KernelSpeed& speed);

} // namespace stagecraft
