// The part of cuBLASLt that we use, declared by hand, since the header may be missing on the building machine. Values
// are those of cublasLt.h; check_headers.cpp compares them where that header is found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstdint>

#include "calibrate/gpu/device/shared_library.hpp"

namespace stagecraft::gpu::lt {

using Handle = struct LibraryContext*;
using Description = struct DescriptionOpaque*;
using Layout = struct LayoutOpaque*;
using Preference = struct PreferenceOpaque*;

struct Algorithm {
  std::uint64_t data[8];
};

struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

enum : int {
  kCompute32F = 68,
  kCompute32FFastTf32 = 77,
  kTransposeNo = 0,
  kTransposeYes = 1,
  kDescriptionTransposeA = 3,
  kDescriptionTransposeB = 4,
  kDescriptionSmCountTarget = 15,
  kDescriptionFastAccumulation = 25,
  kLayoutBatchCount = 5,
  kLayoutBatchStride = 6,
  kPreferenceWorkspace = 1,
  kConfigTile = 1,
  kConfigSplitK = 2,
  kConfigStages = 6,
};

} // namespace stagecraft::gpu::lt

namespace stagecraft::gpu {

/// cuBLASLt's functions; status 0 is success.
struct CublasLt {
  SharedLibrary library;
  std::size_t (*version)() = nullptr;
  int (*create)(lt::Handle*) = nullptr;
  int (*description_create)(lt::Description*, int compute, cudaDataType scale) = nullptr;
  int (*description_destroy)(lt::Description) = nullptr;
  int (*description_set)(lt::Description, int attribute, const void*, std::size_t) = nullptr;
  int (*layout_create)(lt::Layout*, cudaDataType, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t leading) = nullptr;
  int (*layout_destroy)(lt::Layout) = nullptr;
  int (*layout_set)(lt::Layout, int attribute, const void*, std::size_t) = nullptr;
  int (*preference_create)(lt::Preference*) = nullptr;
  int (*preference_destroy)(lt::Preference) = nullptr;
  int (*preference_set)(lt::Preference, int attribute, const void*, std::size_t) = nullptr;
  int (*heuristic)(lt::Handle, lt::Description, lt::Layout a, lt::Layout b, lt::Layout c, lt::Layout d, lt::Preference,
                   int requested, lt::Heuristic*, int* returned) = nullptr;
  int (*config)(const lt::Algorithm*, int attribute, void*, std::size_t, std::size_t* written) = nullptr;
  int (*matmul)(lt::Handle, lt::Description, const void* alpha, const void* a, lt::Layout, const void* b, lt::Layout,
                const void* beta, const void* c, lt::Layout, void* d, lt::Layout, const lt::Algorithm*, void* workspace,
                std::size_t, cudaStream_t) = nullptr;
};

CublasLt open_cublaslt(const std::vector<std::string>& folders);

} // namespace stagecraft::gpu
