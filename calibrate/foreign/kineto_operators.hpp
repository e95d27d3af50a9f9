// Operators of PyTorch as kernels of ours.
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

/// What one call tells: kernels with their times, or why it tells nothing.
struct CallTimes {
  std::vector<KernelTime> times;
  std::string why_not;
};

/// The kernel that a call of an operator is, with the time of all kernels that it launched; a convolution's backward is
/// two, told apart by the names of its kernels.
CallTimes times_of(const OperatorCall& call);

} // namespace stagecraft::foreign
