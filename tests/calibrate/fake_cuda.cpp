// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/fake_cuda.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "calibrate/gpu/device/kernels.hpp"

// A stream stores until when it is busy, an event when it happened.
struct CUstream_st {
  double now = 0, cycles = 0;
  int captured = -1;           ///< empty kernels captured so far; negative: nothing is being captured
  double captured_seconds = 0; ///< seconds of all other work captured
};
struct CUevent_st {
  double at = 0;
};
struct CUgraph_st {
  double seconds = 0;
};
struct CUgraphExec_st {
  double seconds = 0;
};
struct CUgreenCtx_st {};
struct CUdevResourceDesc_st {};

namespace stagecraft::gpu {
namespace fake {

void spend(cudaStream_t stream, double seconds) {
  if (stream->captured >= 0) {
    stream->captured_seconds += seconds;
    return;
  }
  stream->now += seconds;
  stream->cycles += seconds * state().clock;
}

State& state() {
  static State one;
  return one;
}

namespace {

constexpr std::size_t kMemory = std::size_t{3} << 30;
constexpr std::size_t kLarge = std::size_t{32} << 20;
constexpr int kProcessors = 132, kUnit = 8;

cudaError_t allocate(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  ++state().allocations;
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t release(void* memory) {
  state().allocations -= memory != nullptr ? 1 : 0;
  std::free(memory);
  return cudaSuccess;
}

CUresult get_resource(CUdevice, CUdevResource* resource, CUdevResourceType type) {
  resource->type = type;
  resource->sm.smCount = kProcessors;
  return CUDA_SUCCESS;
}

CUresult split(CUdevResource* units, unsigned* count, const CUdevResource* all, CUdevResource*, unsigned,
               unsigned least) {
  *count = std::min(*count, all->sm.smCount / least);
  for (unsigned i = 0; i < *count; ++i) {
    units[i].type = CU_DEV_RESOURCE_TYPE_SM;
    units[i].sm.smCount = kUnit;
  }
  return CUDA_SUCCESS;
}

CUresult describe(CUdevResourceDesc* description, CUdevResource*, unsigned) {
  *description = nullptr;
  return CUDA_SUCCESS;
}

CUresult create_context(CUgreenCtx* context, CUdevResourceDesc, CUdevice, unsigned) {
  *context = new CUgreenCtx_st;
  return CUDA_SUCCESS;
}

CUresult destroy_context(CUgreenCtx context) {
  delete context;
  return CUDA_SUCCESS;
}

CUresult create_stream(CUstream* stream, CUgreenCtx, unsigned, int) {
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}

CUresult get_device(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

} // namespace
} // namespace fake

// Only as many numbers as the few computed products need.
void fill_gaussian(Precision precision, void* values, std::int64_t count, std::uint64_t seed, cudaStream_t) {
  for (std::int64_t i = 0; precision == Precision::fp32 && i < std::min<std::int64_t>(count, 1000); ++i) {
    static_cast<float*>(values)[i] = static_cast<float>((i * 7 + static_cast<std::int64_t>(seed) * 3) % 11 - 5);
  }
}

void fill_rotary(float*, std::int64_t, cudaStream_t) {}
void fill_indices(int* values, std::int64_t count, int below, std::uint64_t, cudaStream_t) {
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<int>(i % below);
  }
}

void launch_empty(cudaStream_t stream) {
  if (stream->captured >= 0) {
    ++stream->captured;
  } else {
    fake::spend(stream, fake::kEmpty);
  }
}

void read_clocks(Stamp* stamp, cudaStream_t stream) {
  const double nanoseconds = stream->now * 1e9;
  *stamp = {static_cast<long long>(stream->cycles), static_cast<long long>(nanoseconds), 0};
}

void spin(long long nanoseconds, cudaStream_t stream) { fake::spend(stream, static_cast<double>(nanoseconds) * 1e-9); }
void block(const volatile int*, long long, int* timed_out, cudaStream_t) {
  ++fake::state().held;
  *timed_out += fake::state().times_out ? 1 : 0;
}
void copy_until(const volatile int*, long long, int*, const void*, void*, std::int64_t, int, cudaStream_t) {}

void wait_as_collective(const volatile int*, long long, int*, cudaStream_t) {}
void copy_as_network(const volatile int*, long long, int*, const void*, void*, std::int64_t, int, double, long long*,
                     cudaStream_t) {}

void stamp_time(long long* at, cudaStream_t stream) { *at = 1 + static_cast<long long>(stream->now * 1e9); }

void await_time(const volatile long long* at, const volatile int* stop, long long, int*, cudaStream_t stream) {
  while (*at == 0 && *stop == 0) {
  }
  stream->now = std::max(stream->now, static_cast<double>(*at) * 1e-9);
}

void copy_shaped(const void*, void*, std::int64_t bytes, const long long*, double latency_nanoseconds,
                 double nanoseconds_per_byte, const volatile int*, cudaStream_t stream) {
  fake::spend(stream, 1e-9 * (latency_nanoseconds + static_cast<double>(bytes) * nanoseconds_per_byte));
}

void mark_processors(int*, cudaStream_t) {}

void run_elementwise(const Kernel& kernel, const ElementwiseOperands&, cudaStream_t stream) {
  ++fake::state().kernels;
  fake::spend(stream, static_cast<double>(kernel.shape[0] * kernel.shape[1]) / fake::kKernelRate);
}

} // namespace stagecraft::gpu

namespace fake = stagecraft::gpu::fake;

extern "C" {

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) { return error == cudaErrorInvalidValue ? "invalid" : "error"; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = fake::state().devices, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 1, cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "NVIDIA Fake 80GB");
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int) {
  std::strncpy(id, "0000:00:00.0", static_cast<std::size_t>(size));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrMultiProcessorCount ? fake::kProcessors
           : attribute == cudaDevAttrL2CacheSize       ? 1 << 20
                                                       : 9;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = fake::kMemory;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return fake::allocate(memory, bytes); }
cudaError_t cudaFree(void* memory) { return fake::release(memory); }
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) { return fake::allocate(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return fake::release(memory); }
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) { return *device = host, cudaSuccess; }
cudaError_t cudaMemset(void*, int, std::size_t) { return cudaSuccess; }
cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

// A large copy takes the host's time too, so that threads that copy without a pause go on for some time.
cudaError_t cudaMemcpyAsync(void*, const void*, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (bytes >= fake::kLarge) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  fake::spend(stream, static_cast<double>(bytes) / fake::kCopyRate);
  return bytes == fake::state().refused_copy ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void*, int, const void*, int, std::size_t bytes, cudaStream_t stream) {
  fake::spend(stream, static_cast<double>(bytes) / fake::kCopyRate);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return *stream = new CUstream_st, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  stream->now = std::max(stream->now, event->at);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new CUevent_st, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return event->at = stream->now, cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>((end->at - begin->at) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->captured_seconds = 0;
  return stream->captured = 0, cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = new CUgraph_st{stream->captured * fake::kEmpty / 2 + stream->captured_seconds};
  stream->captured = -1;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long) {
  return *ready = new CUgraphExec_st{graph->seconds}, cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
  delete ready;
  return cudaSuccess;
}

// A graph runs empty kernels in half the time.
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
  fake::spend(stream, ready->seconds);
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  struct Row {
    const char* name;
    void* function;
  };
  const Row rows[] = {{"cuDeviceGet", reinterpret_cast<void*>(fake::get_device)},
                      {"cuDeviceGetDevResource", reinterpret_cast<void*>(fake::get_resource)},
                      {"cuDevSmResourceSplitByCount", reinterpret_cast<void*>(fake::split)},
                      {"cuDevResourceGenerateDesc", reinterpret_cast<void*>(fake::describe)},
                      {"cuGreenCtxCreate", reinterpret_cast<void*>(fake::create_context)},
                      {"cuGreenCtxDestroy", reinterpret_cast<void*>(fake::destroy_context)},
                      {"cuGreenCtxStreamCreate", reinterpret_cast<void*>(fake::create_stream)}};
  *result = cudaDriverEntryPointSymbolNotFound;
  for (const Row& row : rows) {
    if (std::string(name) == row.name) {
      *function = row.function;
      *result = cudaDriverEntryPointSuccess;
    }
  }
  return cudaSuccess;
}

} // extern "C"
