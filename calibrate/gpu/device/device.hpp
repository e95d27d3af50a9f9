// Facts about a device, its host and its software, found before anything is measured.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "calibrate/gpu/output/measurement_file.hpp"
#include "calibrate/gpu/sweep/sweep.hpp"

namespace stagecraft::gpu {

struct DeviceFacts {
  std::string name;        ///< "h200", made from the description
  std::string description; ///< "NVIDIA H200"
  std::string bus_id;
  double memory = 0, free_memory = 0, cache = 0; ///< bytes
  int processors = 0;
  int capability = 0; ///< 90 for 9.0
};

/// The number of devices; 0, with the reason, if there is no driver or no device.
struct DeviceCount {
  int devices = 0;
  std::string problem;
};
DeviceCount count_devices();

/// Facts about one device; DeviceError if it cannot be queried.
DeviceFacts describe_device(int device);

/// "NVIDIA H100 80GB HBM3" -> "h100-80gb-hbm3".
std::string device_name(const std::string& description);

/// Facts about the host: operating system and cores.
Facts describe_host();

/// A version as CUDA's libraries pack it, as text: 580159 becomes "580.159".
std::string version_text(int packed, int major_unit, int minor_unit);

/// A size in a fitting unit: "139.7 GiB".
std::string memory_text(double bytes);

} // namespace stagecraft::gpu
