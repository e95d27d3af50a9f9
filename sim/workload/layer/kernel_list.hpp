// The kernels that a model runs at a micro-batch size. Measuring all of them leaves nothing to interpolate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/workload/model_graph.hpp"

namespace stagecraft {

/// The kernel of a call for the given number of samples.
Kernel kernel_of(const KernelCall& call, KernelPass pass, Precision precision, double samples);

/// Each kernel of the model once, in the order of its operators, without gradients that nothing needs.
std::vector<Kernel> kernels_of(const ModelGraph& model, Precision precision, double samples);

/// Throws InputError at `file` where the model's costs are given as numbers, so that no kernel is known.
void require_kernels(const ModelGraph& model, const std::string& file);

} // namespace stagecraft
