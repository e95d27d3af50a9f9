// PyTorch's operators as our kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/base/kernel/kernel.hpp"

#include "calibrate/foreign/kineto_events.hpp"

namespace stagecraft::foreign {

struct KernelTime {
  Kernel kernel;
  Seconds time;
};

/// Kernels with their times, or the reason why a call gives none.
struct CallTimes {
  std::vector<KernelTime> times;
  std::string why_not;
};

/// The kernel that a call stands for, with the time of all kernels that it launched. The backward of a convolution
/// gives two, distinguished by the names of their kernels.
CallTimes times_of(const OperatorCall& call);

} // namespace stagecraft::foreign
