// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/pipelines/partitions.hpp"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <limits>
#include <string>

namespace stagecraft::gpu {
namespace {

// Multiprocessors come in units: of 8 on devices of 9.0 and later, of a number that divides 8 on earlier ones.
constexpr unsigned kLeastUnit = 8;
constexpr long long kMostBusy = 5'000'000'000; // nanoseconds

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

// A context on some of the units of a split.
std::shared_ptr<CUgreenCtx_st> context_on(const Driver& driver, CUdevice device, CUdevResource* units, unsigned count) {
  CUdevResourceDesc description{};
  check_driver(driver.describe(&description, units, count), "cuDevResourceGenerateDesc");
  CUgreenCtx context = nullptr;
  check_driver(driver.create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
  return {context, [destroy = driver.destroy](CUgreenCtx one) { destroy(one); }};
}

} // namespace

Partitions::Partitions(int device, const std::vector<int>& sizes) {
  const Driver driver;
  make_stream_ = driver.stream;
  CUdevice handle = 0;
  check_driver(driver.device_get(&handle, device), "cuDeviceGet");
  std::vector<CUdevResource> units = split(driver, handle);
  std::size_t next = 0;
  const auto take = [&](int wanted) {
    const std::size_t first = next;
    int taken = 0;
    while (next < units.size() && taken < wanted) {
      taken += static_cast<int>(units[next++].sm.smCount);
    }
    if (taken > 0) {
      contexts_.push_back(context_on(driver, handle, units.data() + first, static_cast<unsigned>(next - first)));
    }
    return taken;
  };
  for (const int size : sizes) {
    if (size < 1 || take(size) != size) {
      throw DeviceError("no partition of " + std::to_string(size) + " multiprocessors: the device has " +
                        std::to_string(units.size()) + " units of " +
                        std::to_string(units.empty() ? 0 : units.front().sm.smCount));
    }
  }
  rest_ = take(std::numeric_limits<int>::max());
}

std::shared_ptr<CUstream_st> Partitions::stream(std::size_t part) const {
  const std::shared_ptr<CUgreenCtx_st>& context = contexts_.at(part);
  CUstream stream = nullptr;
  check_driver(make_stream_(&stream, context.get(), CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
  return {stream, [context](CUstream one) { cudaStreamDestroy(one); }};
}

Partition::Partition(int device, int processors) : processors_(processors) {
  const Partitions parts(device, {processors});
  others_ = parts.rest();
  if (others_ == 0) {
    throw DeviceError("no partition of " + std::to_string(processors) + " multiprocessors beside another");
  }
  first_ = parts.stream(0);
  second_ = parts.stream(1);
}

Partition::Busy::Busy(const Partition& partition, void* from, void* to, std::int64_t bytes)
    : stream_(partition.second_.get()) {
  constexpr int kBlocksEach = 4; // blocks per multiprocessor
  copy_until(flag_.device(), kMostBusy, timed_out_.device(), from, to, bytes, kBlocksEach * partition.others_, stream_);
  STAGECRAFT_CUDA_CHECK(cudaGetLastError());
}

Partition::Busy::~Busy() {
  *flag_.host() = 1;
  cudaStreamSynchronize(stream_);
}

} // namespace stagecraft::gpu
