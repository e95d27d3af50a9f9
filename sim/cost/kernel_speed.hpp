// Kernels within a training run, slower than the fits to measurements of each alone. docs/model.md, "Kernels in a run".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "sim/cost/cost_model.hpp"
#include "sim/platform/slowest_device.hpp"
#include "sim/workload/training/training.hpp"

namespace stagecraft {

/// The same cost model at the speeds that the training states, with the products of a type's devices as slow as those
/// of the slowest; itself where nothing is slower. `model` must outlive it.
std::unique_ptr<CostModel> at_kernel_speed(std::unique_ptr<CostModel> cost, const ModelGraph& model,
                                           const KernelSpeed& speed, std::vector<SlowestDevice> slowest = {});

} // namespace stagecraft
