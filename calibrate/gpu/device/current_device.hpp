// Choosing the device that calls of the CUDA runtime use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/cuda_error.hpp"

namespace stagecraft::gpu {

/// Makes a device the current one during its lifetime, then restores the previous one.
class CurrentDevice {
public:
  explicit CurrentDevice(int device) {
    STAGECRAFT_CUDA_CHECK(cudaGetDevice(&before_));
    STAGECRAFT_CUDA_CHECK(cudaSetDevice(device));
  }
  ~CurrentDevice() { cudaSetDevice(before_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

private:
  int before_ = 0;
};

} // namespace stagecraft::gpu
