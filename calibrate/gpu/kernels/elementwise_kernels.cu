// Memory-bound operators as frameworks run them: those that treat each value alone, and sums.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/rows.cuh"

namespace stagecraft::gpu {
namespace {

struct Identity {
  __device__ float operator()(float x) const { return x; }
};
struct Relu {
  __device__ float operator()(float x) const { return fmaxf(x, 0.0f); }
};
struct Gelu {
  __device__ float operator()(float x) const { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
};
struct Add {
  __device__ float operator()(float x, float y) const { return x + y; }
};
struct ReluGradient { // from y, times dy
  __device__ float operator()(float y, float dy) const { return y > 0.0f ? dy : 0.0f; }
};
struct GeluGradient { // at x, times dy
  __device__ float operator()(float x, float dy) const {
    const float cumulative = 0.5f * (1.0f + erff(x * 0.70710678f));
    return dy * (cumulative + x * 0.39894228f * __expf(-0.5f * x * x));
  }
};

constexpr float kKept = 0.9f;

template <class T, int Width>
__global__ void dropout_kernel(const T* x, T* y, unsigned char* mask, std::int64_t count, std::uint64_t seed) {
  using Values = Vector<T, Width>;
  using Mask = Vector<unsigned char, Width>;
  const std::int64_t at = thread_number() * Width;
  if (at >= count) {
    return;
  }
  const auto keep = [&](std::int64_t i) {
    const std::uint64_t bits = mix(seed + static_cast<std::uint64_t>(i / 4 + 1)) >> 16 * (i % 4);
    return static_cast<float>(bits & 0xffffu) < kKept * 65536.0f;
  };
  if (at + Width <= count) {
    const Values in = *reinterpret_cast<const Values*>(x + at);
    Values out;
    Mask kept;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      kept.values[i] = keep(at + i);
      out.values[i] = from_float<T>(kept.values[i] != 0 ? to_float(in.values[i]) / kKept : 0.0f);
    }
    *reinterpret_cast<Values*>(y + at) = out;
    *reinterpret_cast<Mask*>(mask + at) = kept;
    return;
  }
  for (std::int64_t i = at; i < count; ++i) {
    mask[i] = keep(i);
    y[i] = from_float<T>(mask[i] != 0 ? to_float(x[i]) / kKept : 0.0f);
  }
}

template <class T, int Width>
__global__ void dropout_gradient_kernel(const T* dy, T* dx, const unsigned char* mask, std::int64_t count) {
  using Values = Vector<T, Width>;
  using Mask = Vector<unsigned char, Width>;
  const std::int64_t at = thread_number() * Width;
  if (at + Width <= count) {
    const Values in = *reinterpret_cast<const Values*>(dy + at);
    const Mask kept = *reinterpret_cast<const Mask*>(mask + at);
    Values out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      out.values[i] = from_float<T>(kept.values[i] != 0 ? to_float(in.values[i]) / kKept : 0.0f);
    }
    *reinterpret_cast<Values*>(dx + at) = out;
    return;
  }
  for (std::int64_t i = at; i < count; ++i) {
    dx[i] = from_float<T>(mask[i] != 0 ? to_float(dy[i]) / kKept : 0.0f);
  }
}

template <class T, int Width> void run_map(const Call& call) {
  const auto* x = static_cast<const T*>(call.operands.x);
  auto* y = static_cast<T*>(call.operands.y);
  auto* z = static_cast<T*>(call.operands.z);
  const unsigned blocks = blocks_for((call.count() + Width - 1) / Width);
  switch (call.kernel.op) {
  case Op::copy:
    map_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, call.count(), Identity());
    break;
  case Op::add:
    map_two_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, z, call.count(), Add());
    break;
  case Op::relu:
    call.forward()
        ? map_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, call.count(), Relu())
        : map_two_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, z, call.count(), ReluGradient());
    break;
  case Op::gelu:
    call.forward()
        ? map_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, call.count(), Gelu())
        : map_two_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, z, call.count(), GeluGradient());
    break;
  default: // dropout
    call.forward()
        ? dropout_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, call.operands.mask, call.count(), 1)
        : dropout_gradient_kernel<T, Width>
        <<<blocks, kThreads, 0, call.stream>>>(x, y, call.operands.mask, call.count());
  }
}

template <class T, int Width> void run_sum(const Call& call) {
  cudaMemsetAsync(call.operands.statistics, 0, sizeof(float), call.stream);
  total_kernel<T, Width><<<std::min(blocks_for(call.count() / Width), 2 * kBlocksOfSums), kThreads, 0, call.stream>>>(
      static_cast<const T*>(call.operands.x), call.operands.statistics, call.count(), Identity());
}

} // namespace

void run_elementwise(const Kernel& kernel, const ElementwiseOperands& operands, cudaStream_t stream) {
  const Call call{kernel, operands, stream, kernel.shape[0], kernel.shape[1]};
  switch (kernel.op) {
  case Op::layer_norm:
  case Op::rms_norm:
  case Op::batch_norm:
  case Op::softmax:
    run_normalization(call);
    break;
  case Op::swiglu:
  case Op::rotary:
  case Op::cross_entropy:
  case Op::embedding:
    run_transformer(call);
    break;
  case Op::adam:
  case Op::clip:
  case Op::cast:
    run_optimizer(call);
    break;
  case Op::sum:
    with_type(kernel.precision, [&](auto value) {
      using T = decltype(value);
      call.columns % kWidth<T> == 0 ? run_sum<T, kWidth<T>>(call) : run_sum<T, 1>(call);
    });
    break;
  default:
    with_type(kernel.precision, [&](auto value) { run_map<decltype(value), kWidth<decltype(value)>>(call); });
  }
}

} // namespace stagecraft::gpu
