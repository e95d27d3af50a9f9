// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/device.hpp"

#include <sys/utsname.h>

#include <array>
#include <cctype>
#include <cstdio>
#include <thread>

#include "calibrate/gpu/device/cuda_error.hpp"

namespace stagecraft::gpu {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  STAGECRAFT_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

} // namespace

DeviceCount count_devices() {
  DeviceCount count;
  const cudaError_t error = cudaGetDeviceCount(&count.devices);
  if (error != cudaSuccess) {
    cudaGetLastError();
    count.devices = 0;
    int driver = 0;
    const bool no_driver = cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0;
    count.problem = no_driver ? "there is no NVIDIA driver" : cudaGetErrorString(error);
  } else if (count.devices == 0) {
    count.problem = "the driver has none";
  }
  return count;
}

DeviceFacts describe_device(int device) {
  STAGECRAFT_CUDA_CHECK(cudaSetDevice(device));
  cudaDeviceProp properties{};
  STAGECRAFT_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  std::array<char, 32> bus_id{};
  STAGECRAFT_CUDA_CHECK(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device));
  std::size_t free = 0, total = 0;
  STAGECRAFT_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  DeviceFacts facts;
  facts.description = properties.name;
  facts.name = device_name(facts.description);
  facts.bus_id = bus_id.data();
  facts.memory = static_cast<double>(total);
  facts.free_memory = static_cast<double>(free);
  facts.cache = attribute(cudaDevAttrL2CacheSize, device);
  facts.processors = attribute(cudaDevAttrMultiProcessorCount, device);
  facts.capability =
      attribute(cudaDevAttrComputeCapabilityMajor, device) * 10 + attribute(cudaDevAttrComputeCapabilityMinor, device);
  return facts;
}

std::string device_name(const std::string& description) {
  std::string name;
  for (const char c : description) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') {
    name.pop_back();
  }
  for (const std::string front : {"nvidia-", "tesla-", "geforce-"}) {
    if (name.size() > front.size() && name.compare(0, front.size(), front) == 0) {
      name.erase(0, front.size());
    }
  }
  return name.empty() ? "gpu" : name;
}

Facts describe_host() {
  utsname system{};
  const std::string description =
      uname(&system) == 0 ? std::string(system.sysname) + " " + system.release + " " + system.machine : "unknown";
  return {{"description", description}, {"cores", std::to_string(std::thread::hardware_concurrency())}};
}

std::string version_text(int packed, int major_unit, int minor_unit) {
  return std::to_string(packed / major_unit) + "." + std::to_string(packed % major_unit / minor_unit) +
         (minor_unit > 1 && packed % minor_unit > 0 ? "." + std::to_string(packed % minor_unit) : "");
}

std::string memory_text(double bytes) {
  constexpr double kMebi = 1024.0 * 1024.0;
  std::array<char, 32> text{};
  const bool large = bytes >= 1024 * kMebi;
  std::snprintf(text.data(), text.size(), "%.4g %s", bytes / (large ? 1024 * kMebi : kMebi), large ? "GiB" : "MiB");
  return text.data();
}

} // namespace stagecraft::gpu
