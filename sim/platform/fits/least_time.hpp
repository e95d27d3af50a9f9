// The least time that fits can say of any kernel of a range.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/platform/fits/kernel_features.hpp"
#include "sim/platform/fits/kernel_fits.hpp"

namespace stagecraft {

/// What predict() cannot fall below over a range of kernels.
struct LeastKernelTime {
  double per_size = 0;    ///< seconds per unit of size
  bool everywhere = true; ///< there is a time for every kernel of the range
};
/// A proven bound, of products without the casts timed with them, for kernels whose size goes from `low_size`, which
/// may be 0, to `high_size` as their extents go from low to high. It presumes that FLOPs and bytes per unit of size
/// never rise with the size. Exact where both ends are the same kernel, unless that one was measured. Nothing where
/// predict() has no time for any of them.
std::optional<LeastKernelTime> least_time(const KernelFits& fits, const KernelRange& kernels, double low_size,
                                          double high_size);

} // namespace stagecraft
