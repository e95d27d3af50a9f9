// What all operators need: the device, its libraries, and memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "calibrate/gpu/device/buffers.hpp"
#include "calibrate/gpu/device/cublaslt.hpp"
#include "calibrate/gpu/device/cudnn.hpp"
#include "calibrate/gpu/device/device.hpp"
#include "calibrate/gpu/device/nvml.hpp"

namespace stagecraft::gpu {

/// A device with its library handles, each made once and never destroyed: they end with the process.
struct Session {
  /// Opens the libraries that are there; a missing one is reported when it is needed.
  Session(int device, std::vector<std::string> folders);

  /// The handle, made on the first call; DeviceError with the reason if it cannot be made.
  lt::Handle lt_handle();
  dnn::Handle dnn_handle();

  int device;
  std::vector<std::string> folders;
  DeviceFacts facts;
  Nvml nvml;
  CublasLt lt;
  Cudnn dnn;
  Arena arena, workspace;

private:
  lt::Handle lt_handle_ = nullptr;
  dnn::Handle dnn_handle_ = nullptr;
};

/// Versions of the driver, the runtime and the libraries.
Facts describe_software(const Session& session);

} // namespace stagecraft::gpu
