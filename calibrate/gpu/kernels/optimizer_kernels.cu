// What follows a backward pass: the optimiser's step, clipping of gradients, casts.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/rows.cuh"

namespace stagecraft::gpu {
namespace {

// --- AdamW
// ------------------------------------------------------------------------------------------------------------

__device__ void adam_step(float& weight, float gradient, float& mean, float& square) {
  constexpr float kRate = 1e-4f, kFirst = 0.9f, kSecond = 0.999f, kSmall = 1e-8f, kDecay = 0.01f;
  mean = kFirst * mean + (1.0f - kFirst) * gradient;
  square = kSecond * square + (1.0f - kSecond) * gradient * gradient;
  weight -= kRate * (mean / (sqrtf(fabsf(square)) + kSmall) + kDecay * weight);
}

// Everything in fp32.
__global__ void adam_kernel(float4* weights, const float4* gradients, float4* first, float4* second,
                            std::int64_t count) {
  const std::int64_t at = thread_number();
  if (at >= count) {
    return;
  }
  float4 w = weights[at], m = first[at], v = second[at];
  const float4 g = gradients[at];
  adam_step(w.x, g.x, m.x, v.x);
  adam_step(w.y, g.y, m.y, v.y);
  adam_step(w.z, g.z, m.z, v.z);
  adam_step(w.w, g.w, m.w, v.w);
  weights[at] = w;
  first[at] = m;
  second[at] = v;
}

// Gradients in 16 bits, and a copy of the weights in 16 bits, for the next forward pass.
template <class T>
__global__ void adam_mixed_kernel(float4* weights, const Vector<T, 4>* gradients, float4* first, float4* second,
                                  Vector<T, 4>* copy, std::int64_t count) {
  const std::int64_t at = thread_number();
  if (at >= count) {
    return;
  }
  float4 w = weights[at], m = first[at], v = second[at];
  const Vector<T, 4> g = gradients[at];
  adam_step(w.x, to_float(g.values[0]), m.x, v.x);
  adam_step(w.y, to_float(g.values[1]), m.y, v.y);
  adam_step(w.z, to_float(g.values[2]), m.z, v.z);
  adam_step(w.w, to_float(g.values[3]), m.w, v.w);
  weights[at] = w;
  first[at] = m;
  second[at] = v;
  copy[at] = {{from_float<T>(w.x), from_float<T>(w.y), from_float<T>(w.z), from_float<T>(w.w)}};
}

// --- Clipping by the norm of all gradients
// ----------------------------------------------------------------------------

struct Square {
  __device__ float operator()(float x) const { return x * x; }
};

template <class T, int Width> __global__ void clip_kernel(T* x, const float* sum, std::int64_t count) {
  const float factor = fminf(1.0f, kMostNorm / (sqrtf(*sum) + 1e-6f));
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x * Width;
  for (std::int64_t at = thread_number() * Width; at + Width <= count; at += stride) {
    auto values = *reinterpret_cast<const Vector<T, Width>*>(x + at);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      values.values[i] = from_float<T>(to_float(values.values[i]) * factor);
    }
    *reinterpret_cast<Vector<T, Width>*>(x + at) = values;
  }
  if (thread_number() < count % Width) {
    T& last = x[count - 1 - thread_number()];
    last = from_float<T>(to_float(last) * factor);
  }
}

// --- Casts
// ------------------------------------------------------------------------------------------------------------

constexpr int kCastWidth = 8; // values of one thread: 16 bytes in 16 bits

// Multiplies by *scale if there is one.
template <class From, class To>
__global__ void cast_kernel(const From* x, To* y, const float* scale, std::int64_t count) {
  const float factor = scale == nullptr ? 1.0f : *scale;
  const std::int64_t at = thread_number() * kCastWidth;
  if (at + kCastWidth <= count) {
    const auto in = *reinterpret_cast<const Vector<From, kCastWidth>*>(x + at);
    Vector<To, kCastWidth> out;
#pragma unroll
    for (int i = 0; i < kCastWidth; ++i) {
      out.values[i] = from_float<To>(to_float(in.values[i]) * factor);
    }
    *reinterpret_cast<Vector<To, kCastWidth>*>(y + at) = out;
    return;
  }
  for (std::int64_t i = at; i < count; ++i) {
    y[i] = from_float<To>(to_float(x[i]) * factor);
  }
}

// --- Launching
// --------------------------------------------------------------------------------------------------------

void run_adam(const Call& call) {
  const std::int64_t count = (call.count() + 3) / 4; // buffers consist of whole vectors
  const ElementwiseOperands& on = call.operands;
  auto* weights = reinterpret_cast<float4*>(on.weights);
  auto* first = reinterpret_cast<float4*>(on.first);
  auto* second = reinterpret_cast<float4*>(on.second);
  const auto mixed = [&](auto value) {
    using Values = Vector<decltype(value), 4>;
    adam_mixed_kernel<decltype(value)><<<blocks_for(count), kThreads, 0, call.stream>>>(
        weights, static_cast<const Values*>(on.x), first, second, static_cast<Values*>(on.y), count);
  };
  if (call.kernel.precision == Precision::bf16) {
    mixed(__nv_bfloat16());
  } else if (call.kernel.precision == Precision::fp16) {
    mixed(__half());
  } else {
    adam_kernel<<<blocks_for(count), kThreads, 0, call.stream>>>(weights, reinterpret_cast<const float4*>(on.gradients),
                                                                 first, second, count);
  }
}

template <class T> void run_clip(const Call& call) {
  auto* x = static_cast<T*>(call.operands.x);
  float* sum = call.operands.statistics;
  const unsigned blocks = std::min(blocks_for(call.count() / kWidth<T>), 2 * kBlocksOfSums);
  cudaMemsetAsync(sum, 0, sizeof(float), call.stream);
  total_kernel<T, kWidth<T>><<<blocks, kThreads, 0, call.stream>>>(x, sum, call.count(), Square());
  clip_kernel<T, kWidth<T>><<<blocks, kThreads, 0, call.stream>>>(x, sum, call.count());
}

template <class From, class To> void run_cast(const Call& call, const float* scale) {
  cast_kernel<From, To><<<blocks_for((call.count() + kCastWidth - 1) / kCastWidth), kThreads, 0, call.stream>>>(
      static_cast<const From*>(call.operands.x), static_cast<To*>(call.operands.y), scale, call.count());
}

void run_cast(const Call& call) {
  switch (call.kernel.precision) {
  case Precision::bf16:
    return run_cast<float, __nv_bfloat16>(call, nullptr);
  case Precision::fp16:
    return run_cast<float, __half>(call, nullptr);
  case Precision::fp8:
    return run_cast<__nv_bfloat16, __nv_fp8_e4m3>(call, call.operands.statistics);
  default:
    return run_cast<__nv_bfloat16, float>(call, nullptr);
  }
}

} // namespace

void run_optimizer(const Call& call) {
  if (call.kernel.op == Op::adam) {
    run_adam(call);
  } else if (call.kernel.op == Op::cast) {
    run_cast(call);
  } else {
    with_type(call.kernel.precision, [&](auto value) { run_clip<decltype(value)>(call); });
  }
}

} // namespace stagecraft::gpu
