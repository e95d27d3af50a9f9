// The part of NVML that we use, declared by hand, since toolkits come without its header. We only query; nothing is
// ever set on a device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "calibrate/gpu/device/shared_library.hpp"

namespace stagecraft::gpu {

/// The management view of one device. Values that the driver does not give are absent.
class Nvml {
public:
  Nvml() = default;
  /// For the device at a PCI bus address, as cudaDeviceGetPCIBusId gives it.
  Nvml(const std::vector<std::string>& folders, const std::string& bus_id);

  /// Why the device cannot be queried; "" if it can.
  const std::string& problem() const { return problem_; }

  std::optional<double> power() const;       ///< W, now; on some devices a mean over up to a second
  std::optional<double> power_limit() const; ///< W, the limit in force
  std::optional<double> energy() const;      ///< J since the driver was loaded
  std::optional<double> clock() const;       ///< Hz, of the multiprocessors
  std::optional<double> memory_clock() const;
  std::optional<double> most_clock() const;
  std::optional<double> temperature() const;         ///< degrees Celsius
  std::optional<unsigned long long> reasons() const; ///< bits that give the reasons for the current clocks
  std::string driver() const;                        ///< version of the driver, or ""
  /// Everything that changes while the device works, in words: "1755 MHz, memory 3201 MHz, 61 C, 412 W, reasons 0x4".
  std::string state() const;

private:
  using Device = struct DeviceOpaque*;

  template <class Function> void want(Function*& function, const char* name, const char* older = nullptr);

  SharedLibrary library_;
  std::string problem_ = "not opened";
  Device device_ = nullptr;
  int (*initialize_)() = nullptr;
  int (*by_bus_id_)(const char*, Device*) = nullptr;
  int (*power_)(Device, unsigned*) = nullptr;
  int (*limit_)(Device, unsigned*) = nullptr;
  int (*energy_)(Device, unsigned long long*) = nullptr;
  int (*clock_)(Device, int, unsigned*) = nullptr;
  int (*most_clock_)(Device, int, unsigned*) = nullptr;
  int (*temperature_)(Device, int, unsigned*) = nullptr;
  int (*reasons_)(Device, unsigned long long*) = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
};

} // namespace stagecraft::gpu
