// The part of NCCL that we use, declared by hand, since the header may be missing on the building machine. Values are
// those of nccl.h; check_headers.cpp compares them where that header is found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "calibrate/gpu/device/shared_library.hpp"

namespace stagecraft::gpu {

using NcclCommunicator = struct NcclCommunicatorOpaque*;

enum : int { kNcclSum = 0, kNcclInt8 = 0, kNcclFloat32 = 7 };

/// NCCL's functions; status 0 is success. Counts are numbers of elements.
struct Nccl {
  SharedLibrary library;
  int (*version)(int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*create_all)(NcclCommunicator*, int devices, const int* list) = nullptr;
  int (*destroy)(NcclCommunicator) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, NcclCommunicator, cudaStream_t) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t each, int type, NcclCommunicator, cudaStream_t) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t each, int type, int op, NcclCommunicator,
                        cudaStream_t) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, NcclCommunicator, cudaStream_t) = nullptr;
  int (*send)(const void*, std::size_t, int type, int peer, NcclCommunicator, cudaStream_t) = nullptr;
  int (*receive)(void*, std::size_t, int type, int peer, NcclCommunicator, cudaStream_t) = nullptr;
};

Nccl open_nccl(const std::vector<std::string>& folders);

} // namespace stagecraft::gpu
