// Numbers that a kernel's time depends on, by name: fits and their files name them, one table computes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "sim/base/kernel/kernel.hpp"

namespace stagecraft {

/// A kernel as a product of matrices, result[rows, columns] += left[rows, depth] right[depth, columns]: a convolution's
/// implicit product, all batches' rows together. Attention: rows and depth are positions, columns the head's size.
struct ProductShape {
  double rows = 1, columns = 1, depth = 1;
};
ProductShape product_of(const Kernel& kernel);

/// One named number.
struct KernelFeature {
  std::string_view name, help;
  /// `processors`: multiprocessors of the device, at least 1.
  double (*value)(const Kernel& kernel, double processors);
};

/// Every feature; docs/model.md explains those of a kind together.
std::span<const KernelFeature> kernel_features();

} // namespace stagecraft
