// Cores of this machine for the devices and channels of a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

/// A core per device. A channel has that of the device that sends, which does nothing else meanwhile: to wake a thread
/// on another core takes longer than most copies.
struct Cores {
  std::vector<int> of_device, of_channel;
};

/// Of the cores that this process may use, in their order. Throws Unavailable where there are fewer than devices.
Cores cores_for(const Setting& setting);

/// Keeps this thread on a core. Whether the system does.
bool stay_on(int core);

} // namespace stagecraft::pipeline
