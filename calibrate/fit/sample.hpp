// One measured time of a kernel, of whatever origin, as fits take it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/kernel/kernel.hpp"

namespace stagecraft::fit {

struct KernelSample {
  Kernel kernel;
  Seconds time;
  std::string variant; ///< another way to run it, as KernelFit::variant
};

using KernelSamples = std::vector<KernelSample>;

} // namespace stagecraft::fit
