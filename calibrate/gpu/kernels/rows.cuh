// Row by row: a team of threads has a row; a team of one warp shares its block with others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/kernels/elementwise.cuh"

namespace stagecraft::gpu {

struct Largest {
  static constexpr float kNeutral = -3.4e38f;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Total {
  static constexpr float kNeutral = 0.0f;
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Reduces a value over the threads of a team, all of which must call it.
template <class Function> __device__ float over_team(float value, Function function) {
  for (int apart = 16; apart > 0; apart /= 2) {
    value = function(value, __shfl_xor_sync(0xffffffffu, value, apart));
  }
  if (blockDim.x == 32) {
    return value;
  }
  __shared__ float of_warps[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads(); // the previous use has ended
  if (lane == 0) {
    of_warps[warp] = value;
  }
  __syncthreads();
  value = lane < static_cast<int>(blockDim.x) / 32 ? of_warps[lane] : Function::kNeutral;
  for (int apart = 16; apart > 0; apart /= 2) {
    value = function(value, __shfl_xor_sync(0xffffffffu, value, apart));
  }
  return value;
}

/// Adds function(x) of all values to *sum. A block is one team.
template <class T, int Width, class Function>
__global__ void total_kernel(const T* x, float* sum, std::int64_t count, Function function) {
  float own = 0.0f;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x * Width;
  for (std::int64_t at = thread_number() * Width; at + Width <= count; at += stride) {
    const auto in = *reinterpret_cast<const Vector<T, Width>*>(x + at);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      own += function(to_float(in.values[i]));
    }
  }
  if (thread_number() < count % Width) { // the last values fill no vector
    own += function(to_float(x[count - 1 - thread_number()]));
  }
  own = over_team(own, Total());
  if (threadIdx.x == 0) {
    atomicAdd(sum, own);
  }
}

__device__ inline std::int64_t team_row() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; }

/// Calls visit(column, values) for each vector of the team's row that belongs to this thread.
template <class T, int Width, class Visit> __device__ void over_row(const T* row, std::int64_t columns, Visit visit) {
  for (std::int64_t at = static_cast<std::int64_t>(threadIdx.x) * Width; at < columns; at += blockDim.x * Width) {
    visit(at, *reinterpret_cast<const Vector<T, Width>*>(row + at));
  }
}

/// The threads for a row of so many vectors (a team), and as many teams as fill a block.
inline dim3 team_for(std::int64_t vectors) {
  unsigned team = 32;
  while (team < 1024 && team * 4 < vectors) {
    team *= 2;
  }
  return dim3(team, team == 32 ? 4 : 1);
}

} // namespace stagecraft::gpu
