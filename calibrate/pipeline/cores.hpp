// Cores of this machine for the devices of a run and the channels between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {

/// A core for each device. A channel uses the core of the sending device, which does nothing else meanwhile: waking a
/// thread on another core would take longer than most copies.
struct Cores {
  std::vector<int> of_device, of_channel;
};

/// Chooses from the cores that this process may use, in order. Throws Unavailable if there are fewer cores than
/// devices.
Cores cores_for(const Setting& setting);

/// Binds this thread to a core. Returns whether the system did it.
bool stay_on(int core);

} // namespace stagecraft::pipeline
