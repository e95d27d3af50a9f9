// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/session.hpp"

#include <cstdint>
#include <utility>

namespace stagecraft::gpu {
namespace {

constexpr double kArenaShare = 0.6; // share of free memory; points take at most 0.4
constexpr std::size_t kWorkspace = std::size_t{1} << 30;

int ask_version(cudaError_t (*ask)(int*)) {
  int version = 0;
  return ask(&version) == cudaSuccess ? version : 0;
}

} // namespace

Session::Session(int device_number, std::vector<std::string> library_folders)
    : device(device_number), folders(std::move(library_folders)), facts(describe_device(device)),
      nvml(folders, facts.bus_id), lt(open_cublaslt(folders)), dnn(open_cudnn(folders)),
      arena(static_cast<std::size_t>(facts.free_memory * kArenaShare)), workspace(kWorkspace) {}

lt::Handle Session::lt_handle() {
  if (!lt.library) {
    throw DeviceError("cuBLASLt is missing: " + lt.library.problem());
  }
  if (lt_handle_ == nullptr) {
    if (const int status = lt.create(&lt_handle_); status != 0) {
      throw DeviceError("cublasLtCreate says " + std::to_string(status));
    }
  }
  return lt_handle_;
}

dnn::Handle Session::dnn_handle() {
  if (!dnn.library) {
    throw DeviceError("cuDNN is missing: " + dnn.library.problem());
  }
  if (dnn_handle_ == nullptr) {
    if (const int status = dnn.create(&dnn_handle_); status != 0) {
      throw DeviceError(std::string("cudnnCreate says ") + dnn.error_string(status));
    }
  }
  return dnn_handle_;
}

Facts describe_software(const Session& session) {
  constexpr int kThousand = 1000, kTen = 10, kTenThousand = 10000, kHundred = 100;
  Facts facts = {{"harness", "1"}};
  if (const std::string driver = session.nvml.driver(); !driver.empty()) {
    facts.emplace_back("driver", driver);
  }
  facts.emplace_back("cuda", version_text(ask_version(cudaRuntimeGetVersion), kThousand, kTen));
  facts.emplace_back("cuda_of_driver", version_text(ask_version(cudaDriverGetVersion), kThousand, kTen));
  if (session.lt.library) {
    facts.emplace_back("cublas", version_text(static_cast<int>(session.lt.version()), kTenThousand, kHundred));
  }
  if (session.dnn.library) {
    facts.emplace_back("cudnn", version_text(static_cast<int>(session.dnn.version()), kTenThousand, kHundred));
  }
  return facts;
}

} // namespace stagecraft::gpu
