// A sweep in a process of its own, started again without the point that broke it: a kernel that writes where it must
// not makes the device useless to its process, a library may crash, and a kernel may never end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "calibrate/gpu/sweep/options.hpp"

namespace stagecraft::gpu {

/// Whether this process was started by supervise().
bool is_supervised();

/// Runs this program with these arguments, again with what is left of the budget as long as a point breaks it. A point
/// that takes half a minute is ended. Returns the exit status of the last process; `failed` if a signal ended it.
/// Passes `stop` on.
int supervise(const std::vector<std::string>& arguments, const Options& options, const std::atomic<bool>& stop,
              int failed);

} // namespace stagecraft::gpu
