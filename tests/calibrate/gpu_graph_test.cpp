// cuDNN accepts the harness's graphs: it plans them for the description of an H100, without such a device.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <iostream>

#include "tests/catch.hpp"

#include "calibrate/gpu/device/cuda_error.hpp"
#include "calibrate/gpu/kernels/attention_graph.hpp"
#include "calibrate/gpu/kernels/convolution_graph.hpp"

namespace stagecraft::gpu {
namespace {

// The properties of a device that cuDNN needs for planning.
constexpr const char* kHopper =
    R"({"deviceName":"NVIDIA H100 80GB HBM3","cudaDeviceId":0,"deviceVer":900,"driverVer":13000,)"
    R"("multiProcessorCount":132,"totalGlobalMem":85017624576,"l2CacheSize":52428800,"warpSize":32,)"
    R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"maxThreadsPerBlock":1024,)"
    R"("maxThreadsPerSM":2048,"maxCtasPerSM":32,"regsPerBlock":65536,"maxRegistersPerSM":65536,)"
    R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,"reservedSharedMemoryPerBlock":1024,)"
    R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1})";

constexpr std::size_t kOldestTried = 91900;

// The driver loads compiled kernels; without one, the toolkit's stub is loaded and refuses.
bool has_driver() {
  return dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr ||
         dlopen(STAGECRAFT_CUDA_STUB, RTLD_NOW | RTLD_GLOBAL) != nullptr;
}

// cuDNN, or nullptr, after a line that says why it is missing.
const Cudnn* cudnn(bool compiles) {
  static const bool kHasDriver = has_driver();
  static const Cudnn kCudnn = open_cudnn(library_folders({}));
  if (!kCudnn.library || kCudnn.version() < kOldestTried) {
    std::cerr << "skipped: no cuDNN of 9.19 or later: " << kCudnn.library.problem() << "\n";
    return nullptr;
  }
  if (compiles && !kHasDriver) {
    std::cerr << "skipped: neither a driver nor the toolkit's stub of one\n";
    return nullptr;
  }
  return &kCudnn;
}

// "" if a plan was made, or failed only when it was loaded onto a device; else what is wrong with the graph.
template <class Add> std::string problem_of(const Cudnn& dnn, bool tensor_cores, const Add& add) {
  DnnTarget target;
  target.dnn = &dnn;
  target.properties = kHopper;
  target.workspace = std::size_t{1} << 30;
  try {
    DnnGraph graph(dnn);
    add(graph);
    const DnnPlan plan(target, graph, tensor_cores);
    return plan.variant().find("engine ") == 0 ? "" : "no engine is named";
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    return text.find("cuLibraryLoadData") != std::string::npos ? "" : text;
  }
}

TEST_CASE("cuDNN plans convolutions and both gradients in every precision", "[gpu][cudnn]") {
  const Cudnn* dnn = cudnn(false);
  if (dnn == nullptr) {
    return;
  }
  for (const char* pass : {"forward", "backward-input", "backward-weight"}) {
    for (const char* precision : {"bf16", "fp16", "tf32", "fp32"}) {
      for (const char* shape : {"n=8 c=64 h=56 w=56 k=64 r=3 s=3 stride=1 padding=1 groups=1",
                                "n=8 c=256 h=56 w=56 k=512 r=1 s=1 stride=2 padding=0 groups=1"}) {
        const Kernel kernel = parse_kernel(std::string("convolution ") + pass + " " + precision + " " + shape);
        INFO(to_text(kernel));
        CHECK(problem_of(*dnn, kernel.precision != Precision::fp32,
                         [&](DnnGraph& graph) { add_convolution(graph, kernel); }) == "");
      }
    }
  }
}

TEST_CASE("cuDNN fuses attention forward, masked or not, with heads shared or not", "[gpu][cudnn]") {
  const Cudnn* dnn = cudnn(true);
  if (dnn == nullptr) {
    return;
  }
  const Kernel plain =
      parse_kernel("attention forward bf16 batch=4 sequence=2048 heads=16 kv_heads=16 head_size=128 causal=0");
  CHECK(problem_of(*dnn, true, [&](DnnGraph& graph) { add_attention(graph, plain); }) == "");
  const Kernel masked =
      parse_kernel("attention forward fp16 batch=4 sequence=1000 heads=16 kv_heads=4 head_size=64 causal=1");
  CHECK(problem_of(*dnn, true, [&](DnnGraph& graph) { add_attention_parts(graph, masked); }) == "");
}

TEST_CASE("cuDNN fuses attention backward, masked and with shared heads", "[gpu][cudnn]") {
  const Cudnn* dnn = cudnn(true);
  if (dnn == nullptr) {
    return;
  }
  const Kernel kernel =
      parse_kernel("attention backward-input bf16 batch=4 sequence=2048 heads=32 kv_heads=8 head_size=128 causal=1");
  CHECK(problem_of(*dnn, true, [&](DnnGraph& graph) { add_attention_backward(graph, kernel); }) == "");
}

} // namespace
} // namespace stagecraft::gpu
