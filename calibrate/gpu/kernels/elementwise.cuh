// Shared by the memory-bound operators: vectors, and what a launch needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "calibrate/gpu/device/kernels.hpp"
#include "calibrate/gpu/device/threads.cuh"

namespace stagecraft::gpu {

inline constexpr int kVectorBytes = 16;

/// The values that one thread loads at once.
template <class T, int Width> struct alignas(sizeof(T) * Width) Vector { T values[Width]; };

/// Values in one vector of 16 bytes.
template <class T> inline constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));

inline constexpr unsigned kBlocksOfSums = 1024; // several per multiprocessor on any device

/// y = function(x), value by value.
template <class T, int Width, class Function>
__global__ void map_kernel(const T* x, T* y, std::int64_t count, Function function) {
  using Values = Vector<T, Width>;
  const std::int64_t at = thread_number() * Width;
  if (at + Width <= count) {
    const Values in = *reinterpret_cast<const Values*>(x + at);
    Values out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      out.values[i] = from_float<T>(function(to_float(in.values[i])));
    }
    *reinterpret_cast<Values*>(y + at) = out;
    return;
  }
  for (std::int64_t i = at; i < count; ++i) {
    y[i] = from_float<T>(function(to_float(x[i])));
  }
}

/// z = function(x, y), value by value.
template <class T, int Width, class Function>
__global__ void map_two_kernel(const T* x, const T* y, T* z, std::int64_t count, Function function) {
  using Values = Vector<T, Width>;
  const std::int64_t at = thread_number() * Width;
  if (at + Width <= count) {
    const Values left = *reinterpret_cast<const Values*>(x + at), right = *reinterpret_cast<const Values*>(y + at);
    Values out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      out.values[i] = from_float<T>(function(to_float(left.values[i]), to_float(right.values[i])));
    }
    *reinterpret_cast<Values*>(z + at) = out;
    return;
  }
  for (std::int64_t i = at; i < count; ++i) {
    z[i] = from_float<T>(function(to_float(x[i]), to_float(y[i])));
  }
}

/// A kernel with its operands.
struct Call {
  const Kernel& kernel;
  const ElementwiseOperands& operands;
  cudaStream_t stream;
  std::int64_t rows, columns;

  std::int64_t count() const { return rows * columns; }
  bool forward() const { return kernel.pass == Pass::forward; }
};

/// Calls run with a value of the type that elements are stored in.
template <class Run> void with_type(Precision precision, Run run) {
  if (precision == Precision::bf16) {
    run(__nv_bfloat16());
  } else if (precision == Precision::fp16) {
    run(__half());
  } else {
    run(float());
  }
}

/// The operators, each in a file of its subject.
void run_normalization(const Call& call);
void run_transformer(const Call& call);
void run_optimizer(const Call& call);

} // namespace stagecraft::gpu
