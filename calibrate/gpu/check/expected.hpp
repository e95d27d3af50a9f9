// What our kernels must compute, by plain loops on the host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "calibrate/gpu/check/host_values.hpp"
#include "calibrate/gpu/device/kernels.hpp"

namespace stagecraft::gpu {

/// Values that a kernel must write to a place.
struct Expected {
  const void* at = nullptr;
  Stored stored = Stored::fp32;
  Values values;
  double scale = 0; ///< size of the terms that were summed; 0: the root of the mean square of the values
};

/// What a memory-bound kernel must write, from its operands, which are read before it runs.
std::vector<Expected> expected_of(const Kernel& kernel, const ElementwiseOperands& operands);

/// The result of a dropout for the mask in memory, which it writes itself: read after it has run.
std::vector<Expected> expected_of_dropout(const Kernel& kernel, const ElementwiseOperands& operands);
/// The share of its values that the mask keeps, and the one that it should.
double kept_share(const Kernel& kernel, const ElementwiseOperands& operands);
inline constexpr double kKept = 0.9;

/// The product in the layouts of its pass (kernels/gemm.cpp), from operands in memory.
Expected expected_product(const Kernel& kernel, const void* a, const void* b, const void* c);

/// The largest difference, as a share of the value and of the scale together. Values that are no numbers must be so in
/// both.
double error_of(const Expected& expected, const Values& got);

} // namespace stagecraft::gpu
