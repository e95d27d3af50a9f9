// Shared by our kernels: numbers of threads, conversions, a hash.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstdint>

namespace stagecraft::gpu {

inline constexpr int kThreads = 256; // threads per block

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float to_float(__nv_fp8_e4m3 value) { return static_cast<float>(value); }
template <class T> __device__ T from_float(float value);
template <> __device__ inline float from_float<float>(float value) { return value; }
template <> __device__ inline __half from_float<__half>(float value) { return __float2half(value); }
template <> __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) { return __float2bfloat16(value); }
template <> __device__ inline __nv_fp8_e4m3 from_float<__nv_fp8_e4m3>(float value) { return __nv_fp8_e4m3(value); }

// A bijection of 64 bits whose output looks random (Stafford's variant 13 of the finaliser of MurmurHash3).
__device__ inline std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

__device__ inline std::int64_t thread_number() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

inline unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>(std::max<std::int64_t>((threads + kThreads - 1) / kThreads, 1));
}

} // namespace stagecraft::gpu
