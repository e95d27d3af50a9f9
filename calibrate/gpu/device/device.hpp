// What is known of a device, its host and its software before anything is measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/gpu/output/measurement_file.hpp"
#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft::gpu {

struct DeviceFacts {
  std::string name;        ///< "h200", from the description
  std::string description; ///< "NVIDIA H200"
  std::string bus_id;
  double memory = 0, free_memory = 0, cache = 0; ///< B
  int processors = 0;
  int capability = 0; ///< 90 for 9.0
};

/// How many devices there are; 0, with the reason, where the driver or a device is missing.
struct DeviceCount {
  int devices = 0;
  std::string problem;
};
DeviceCount count_devices();

/// Of one device; DeviceError where it cannot be asked.
DeviceFacts describe_device(int device);

/// "NVIDIA H100 80GB HBM3" -> "h100-80gb-hbm3".
std::string device_name(const std::string& description);

/// Operating system and cores.
Facts describe_host();

/// "580.159" of 580159 and the like: major, minor and patch as CUDA's libraries pack them.
std::string version_text(int packed, int major_unit, int minor_unit);

/// "139.7 GiB".
std::string memory_text(double bytes);

} // namespace stagecraft::gpu
