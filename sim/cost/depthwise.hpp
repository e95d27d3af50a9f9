// Convolutions of each channel by itself, by the instructions of their kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/cost/cost_model.hpp"

namespace stagecraft {

/// Whether a pass convolves each channel by itself (a depthwise convolution).
bool is_depthwise(const Operator& what, const Pass& pass);

/// The time of such a pass; nothing of other passes, and where the device states no rate of element-wise kernels. It is
/// the longest of its memory traffic and of the instructions that PyTorch's kernels issue for each value, tap by tap
/// (aten/src/ATen/native/cuda/ DepthwiseConv2d.cu, version 1.8): no unit multiplies such windows as matrices, and fits
/// to convolutions that sum over channels say nothing of them (docs/model.md, "Depthwise convolutions").
std::optional<Seconds> depthwise_time(const Operator& what, const Pass& pass, KernelPass which, const DeviceType& type,
                                      double samples, Precision precision, const Shard& shard);

} // namespace stagecraft
