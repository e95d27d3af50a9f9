// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/partitions.hpp"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <vector>

namespace stagecraft::gpu {
namespace {

// Multiprocessors come in units: 8 is what devices of 9.0 and later give, and a multiple of what earlier ones do.
constexpr unsigned kLeastUnit = 8;
constexpr long long kMostBusy = 5'000'000'000; // ns

template <class Function> Function* driver(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess || found == nullptr) {
    cudaGetLastError();
    throw DeviceError(std::string("the driver has no ") + name);
  }
  return reinterpret_cast<Function*>(found);
}

void check_driver(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) {
    throw DeviceError(std::string(call) + " says " + std::to_string(result));
  }
}

template <class Pointer> using Pointed = std::remove_pointer_t<Pointer>;

struct Driver {
  Pointed<PFN_cuDeviceGet_v2000>* device_get = driver<Pointed<PFN_cuDeviceGet_v2000>>("cuDeviceGet", 2000);
  Pointed<PFN_cuDeviceGetDevResource_v12040>* resource =
      driver<Pointed<PFN_cuDeviceGetDevResource_v12040>>("cuDeviceGetDevResource", 12040);
  Pointed<PFN_cuDevSmResourceSplitByCount_v12040>* split =
      driver<Pointed<PFN_cuDevSmResourceSplitByCount_v12040>>("cuDevSmResourceSplitByCount", 12040);
  Pointed<PFN_cuDevResourceGenerateDesc_v12040>* describe =
      driver<Pointed<PFN_cuDevResourceGenerateDesc_v12040>>("cuDevResourceGenerateDesc", 12040);
  Pointed<PFN_cuGreenCtxCreate_v12040>* create =
      driver<Pointed<PFN_cuGreenCtxCreate_v12040>>("cuGreenCtxCreate", 12040);
  Pointed<PFN_cuGreenCtxDestroy_v12040>* destroy =
      driver<Pointed<PFN_cuGreenCtxDestroy_v12040>>("cuGreenCtxDestroy", 12040);
  Pointed<PFN_cuGreenCtxStreamCreate_v12050>* stream =
      driver<Pointed<PFN_cuGreenCtxStreamCreate_v12050>>("cuGreenCtxStreamCreate", 12050);
};

std::vector<CUdevResource> split(const Driver& driver, CUdevice device) {
  CUdevResource all{};
  check_driver(driver.resource(device, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
  unsigned count = all.sm.smCount / kLeastUnit;
  std::vector<CUdevResource> units(count);
  CUdevResource rest{};
  check_driver(driver.split(units.data(), &count, &all, &rest, 0, kLeastUnit), "cuDevSmResourceSplitByCount");
  units.resize(count);
  return units;
}

// A stream on the given units, which come from one split; its context lives as long as it does.
std::shared_ptr<CUstream_st> stream_on(const Driver& driver, CUdevice device, CUdevResource* units, unsigned count) {
  CUdevResourceDesc description{};
  check_driver(driver.describe(&description, units, count), "cuDevResourceGenerateDesc");
  CUgreenCtx context = nullptr;
  check_driver(driver.create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
  CUstream stream = nullptr;
  if (const CUresult made = driver.stream(&stream, context, CU_STREAM_NON_BLOCKING, 0); made != CUDA_SUCCESS) {
    driver.destroy(context);
    check_driver(made, "cuGreenCtxStreamCreate");
  }
  return std::shared_ptr<CUstream_st>(stream, [destroy = driver.destroy, context](CUstream one) {
    cudaStreamDestroy(one);
    destroy(context);
  });
}

} // namespace

Partition::Partition(int device, int processors) {
  const Driver driver;
  CUdevice handle = 0;
  check_driver(driver.device_get(&handle, device), "cuDeviceGet");
  std::vector<CUdevResource> units = split(driver, handle);
  std::size_t taken = 0;
  while (taken < units.size() && processors_ < processors) {
    processors_ += static_cast<int>(units[taken++].sm.smCount);
  }
  for (std::size_t i = taken; i < units.size(); ++i) {
    others_ += static_cast<int>(units[i].sm.smCount);
  }
  if (processors_ != processors || others_ == 0) {
    throw DeviceError("no partition of " + std::to_string(processors) + " multiprocessors beside another");
  }
  first_ = stream_on(driver, handle, units.data(), static_cast<unsigned>(taken));
  second_ = stream_on(driver, handle, units.data() + taken, static_cast<unsigned>(units.size() - taken));
}

Partition::Busy::Busy(const Partition& partition, void* from, void* to, std::int64_t bytes)
    : stream_(partition.second_.get()) {
  constexpr int kBlocksEach = 4; // of a multiprocessor
  copy_until(flag_.device(), kMostBusy, timed_out_.device(), from, to, bytes, kBlocksEach * partition.others_, stream_);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
}

Partition::Busy::~Busy() {
  *flag_.host() = 1;
  cudaStreamSynchronize(stream_);
}

} // namespace stagecraft::gpu
