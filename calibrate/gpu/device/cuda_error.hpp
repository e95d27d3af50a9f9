// Checks every call of the CUDA runtime; errors say where it failed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace stagecraft::gpu {

/// A call that failed: what, where and why. `sticky`: the device cannot be used any more in this process.
class DeviceError : public std::runtime_error {
public:
  explicit DeviceError(const std::string& text, bool sticky = false) : std::runtime_error(text), sticky_(sticky) {}
  bool sticky() const { return sticky_; }

private:
  bool sticky_;
};

inline void check_cuda(cudaError_t error, const char* call, const char* file, int line) {
  if (error != cudaSuccess) {
    cudaGetLastError(); // clears the error if it can be cleared
    const std::string path = file;
    throw DeviceError(path.substr(path.rfind('/') + 1) + ":" + std::to_string(line) + ": " + call + ": " +
                          cudaGetErrorString(error),
                      cudaPeekAtLastError() != cudaSuccess);
  }
}

} // namespace stagecraft::gpu

/// Throws DeviceError unless `call` succeeds.
#define STAGECRAFT_CUDA_CHECK(call) ::stagecraft::gpu::check_cuda((call), #call, __FILE__, __LINE__)
