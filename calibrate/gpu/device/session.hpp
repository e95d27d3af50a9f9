// What every operation needs: the device, its libraries, and memory.
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

/// A handle of a library: made once, never destroyed; the process ends with it.
struct Session {
  /// Opens what is there; a library that is missing says so when it is asked for.
  Session(int device, const std::vector<std::string>& folders);

  /// The handle, made at the first call; DeviceError with the reason where there is none.
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
