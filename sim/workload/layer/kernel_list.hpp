// The kernels of a model at a micro-batch size: what to measure so that nothing need be interpolated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// A call's kernel for so many samples.
Kernel kernel_of(const KernelCall& call, KernelPass pass, Precision precision, double samples);

/// Each kernel of the model once, in the order of its operators; gradients that nothing needs are left out.
std::vector<Kernel> kernels_of(const ModelGraph& model, Precision precision, double samples);

/// InputError at `file` where the model's costs are numbers, so that there is no kernel to run.
void require_kernels(const ModelGraph& model, const std::string& file);

} // namespace stagecraft
