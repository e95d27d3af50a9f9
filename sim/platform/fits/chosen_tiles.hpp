// What a product takes by the tiles, and the parts of its depth, that a library of kernels chooses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/platform/fits/kernel_features.hpp"

namespace stagecraft {

/// ln(T / roofline) of a product on so many multiprocessors of an A100's rates. T: whole waves of tiles of the size,
/// and of as many parts of the depth, that seem best by a rougher rule than the one that tells their time, as cuBLAS
/// chooses kernels. Not below ln 1.3. docs/model.md, "Fits".
double chosen_tiles(const Kernel& kernel, double processors);

/// Its bounds over a range of kernels.
FeatureRange chosen_tiles_range(const KernelRange& kernels, double processors);

} // namespace stagecraft
