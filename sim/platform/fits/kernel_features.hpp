// Numbers that a kernel's time depends on, by name. Fits and their files name them; one table computes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "sim/base/kernel/kernel.hpp"

namespace stagecraft {

/// A kernel as a product of matrices, result[rows, columns] += left[rows, depth] right[depth, columns]. Convolution:
/// its implicit product, with the rows of all batches together. Attention: rows and depth are positions, columns the
/// size of a head.
struct ProductShape {
  double rows = 1, columns = 1, depth = 1;
};
ProductShape product_of(const Kernel& kernel);

/// All kernels of one op, pass and precision, each extent of which lies between those of two of them.
struct KernelRange {
  Kernel low, high;
};

struct FeatureRange {
  double low = 0, high = 0;
};

/// One feature: a name and how to compute it.
struct KernelFeature {
  std::string_view name, help;
  /// `processors`: multiprocessors of the device, at least 1.
  double (*value)(const Kernel& kernel, double processors);
  /// Bounds of the value over a range of kernels, the closer the narrower the range; nullptr: the value rises with
  /// every extent that a range may vary, so its ends have them.
  FeatureRange (*range)(const KernelRange& kernels, double processors) = nullptr;
};

/// Features that a grid of times may have axes of, at most.
inline constexpr std::size_t kMostGridAxes = 6;

/// Bounds of a feature over a range of kernels.
FeatureRange range_of(const KernelFeature& feature, const KernelRange& kernels, double processors);

/// Every feature; docs/model.md explains them by kind of kernel.
std::span<const KernelFeature> kernel_features();

} // namespace stagecraft
