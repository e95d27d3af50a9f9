// One measured time of a kernel, from any source, as fits take it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/kernel/kernel.hpp"

namespace stagecraft::fit {

struct KernelSample {
  Kernel kernel;
  Seconds time;
  std::string variant; ///< another implementation, as in KernelFit::variant
};

using KernelSamples = std::vector<KernelSample>;

} // namespace stagecraft::fit
