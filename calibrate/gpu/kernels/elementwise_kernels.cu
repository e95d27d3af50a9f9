// Memory-bound operators as frameworks run them.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/kernels.hpp"
#include "calibrate/gpu/device/threads.cuh"

namespace stagecraft::gpu {
namespace {

constexpr int kVectorBytes = 16;

// The values that one thread loads at once.
template <class T, int Width> struct alignas(sizeof(T) * Width) Vector {
  T values[Width];
};

// --- One value after the other --------------------------------------------------------------------------------------

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

__global__ void adam_kernel(float4* weights, const float4* gradients, float4* first, float4* second,
                            std::int64_t count) {
  constexpr float kRate = 1e-4f, kFirst = 0.9f, kSecond = 0.999f, kSmall = 1e-8f, kDecay = 0.01f;
  const std::int64_t at = thread_number();
  if (at >= count) {
    return;
  }
  float4 w = weights[at], m = first[at], v = second[at];
  const float4 g = gradients[at];
  const auto step = [](float& weight, float gradient, float& mean, float& square) {
    mean = kFirst * mean + (1.0f - kFirst) * gradient;
    square = kSecond * square + (1.0f - kSecond) * gradient * gradient;
    weight -= kRate * (mean / (sqrtf(fabsf(square)) + kSmall) + kDecay * weight);
  };
  step(w.x, g.x, m.x, v.x);
  step(w.y, g.y, m.y, v.y);
  step(w.z, g.z, m.z, v.z);
  step(w.w, g.w, m.w, v.w);
  weights[at] = w;
  first[at] = m;
  second[at] = v;
}

// --- Row by row: a team of threads has a row; a team of one warp shares its block with others -------------------------

struct Largest {
  static constexpr float kNeutral = -3.4e38f;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Total {
  static constexpr float kNeutral = 0.0f;
  __device__ float operator()(float a, float b) const { return a + b; }
};

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

__device__ std::int64_t team_row() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; }

// Calls visit(column, values) for each vector of the team's row that belongs to this thread.
template <class T, int Width, class Visit> __device__ void over_row(const T* row, std::int64_t columns, Visit visit) {
  for (std::int64_t at = static_cast<std::int64_t>(threadIdx.x) * Width; at < columns; at += blockDim.x * Width) {
    visit(at, *reinterpret_cast<const Vector<T, Width>*>(row + at));
  }
}

template <class T, int Width>
__global__ void layer_norm_kernel(const T* x, T* y, const float* gain, float* statistics, std::int64_t rows,
                                  std::int64_t columns) {
  const std::int64_t row = team_row();
  if (row >= rows) {
    return;
  }
  float sum = 0.0f, squares = 0.0f;
  over_row<T, Width>(x + row * columns, columns, [&](std::int64_t, const Vector<T, Width>& in) {
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const float value = to_float(in.values[i]);
      sum += value;
      squares += value * value;
    }
  });
  const float mean = over_team(sum, Total()) / columns;
  const float scale = rsqrtf(over_team(squares, Total()) / columns - mean * mean + 1e-5f);
  over_row<T, Width>(x + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    Vector<T, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      out.values[i] = from_float<T>((to_float(in.values[i]) - mean) * scale * gain[at + i]);
    }
    *reinterpret_cast<Vector<T, Width>*>(y + row * columns + at) = out;
  });
  if (threadIdx.x == 0) {
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = scale;
  }
}

template <class T, int Width>
__global__ void layer_norm_gradient_kernel(const T* x, const T* dy, T* dx, const float* gain, const float* statistics,
                                           std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = team_row();
  if (row >= rows) {
    return;
  }
  const float mean = statistics[2 * row], scale = statistics[2 * row + 1];
  float sum = 0.0f, products = 0.0f;
  over_row<T, Width>(dy + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    const auto inputs = *reinterpret_cast<const Vector<T, Width>*>(x + row * columns + at);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const float gradient = to_float(in.values[i]) * gain[at + i];
      sum += gradient;
      products += gradient * (to_float(inputs.values[i]) - mean) * scale;
    }
  });
  sum = over_team(sum, Total()) / columns;
  products = over_team(products, Total()) / columns;
  over_row<T, Width>(dy + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    const auto inputs = *reinterpret_cast<const Vector<T, Width>*>(x + row * columns + at);
    Vector<T, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const float normal = (to_float(inputs.values[i]) - mean) * scale;
      out.values[i] = from_float<T>(scale * (to_float(in.values[i]) * gain[at + i] - sum - normal * products));
    }
    *reinterpret_cast<Vector<T, Width>*>(dx + row * columns + at) = out;
  });
}

template <class T, int Width>
__global__ void softmax_kernel(const T* x, T* y, std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = team_row();
  if (row >= rows) {
    return;
  }
  const T* in_row = x + row * columns;
  float most = Largest::kNeutral;
  over_row<T, Width>(in_row, columns, [&](std::int64_t, const Vector<T, Width>& in) {
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      most = fmaxf(most, to_float(in.values[i]));
    }
  });
  most = over_team(most, Largest());
  float sum = 0.0f;
  over_row<T, Width>(in_row, columns, [&](std::int64_t, const Vector<T, Width>& in) {
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      sum += __expf(to_float(in.values[i]) - most);
    }
  });
  const float share = 1.0f / over_team(sum, Total());
  over_row<T, Width>(in_row, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    Vector<T, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      out.values[i] = from_float<T>(__expf(to_float(in.values[i]) - most) * share);
    }
    *reinterpret_cast<Vector<T, Width>*>(y + row * columns + at) = out;
  });
}

template <class T, int Width>
__global__ void softmax_gradient_kernel(const T* y, const T* dy, T* dx, std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = team_row();
  if (row >= rows) {
    return;
  }
  float sum = 0.0f;
  over_row<T, Width>(dy + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    const auto outputs = *reinterpret_cast<const Vector<T, Width>*>(y + row * columns + at);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      sum += to_float(in.values[i]) * to_float(outputs.values[i]);
    }
  });
  sum = over_team(sum, Total());
  over_row<T, Width>(dy + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    const auto outputs = *reinterpret_cast<const Vector<T, Width>*>(y + row * columns + at);
    Vector<T, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      out.values[i] = from_float<T>(to_float(outputs.values[i]) * (to_float(in.values[i]) - sum));
    }
    *reinterpret_cast<Vector<T, Width>*>(dx + row * columns + at) = out;
  });
}

// --- Column by column: batch norm of images whose channels lie innermost ----------------------------------------------

// Sums over rows of a and of a times b (or of a times a if b is null), added to sums[2 * column] and to the element
// after it. A block has up to 256 vectors of columns; if there are fewer, several threads share a vector, each with
// rows of its own.
template <class T, int Width>
__global__ void column_sums_kernel(const T* a, const T* b, float* sums, std::int64_t rows, std::int64_t columns) {
  __shared__ float parts[kThreads][2 * Width];
  const auto vectors = static_cast<int>(columns / Width - static_cast<std::int64_t>(blockIdx.y) * kThreads < kThreads
                                            ? columns / Width - static_cast<std::int64_t>(blockIdx.y) * kThreads
                                            : kThreads);
  const int sharing = kThreads / vectors;
  const int vector = static_cast<int>(threadIdx.x) % vectors, part = static_cast<int>(threadIdx.x) / vectors;
  const std::int64_t at = (static_cast<std::int64_t>(blockIdx.y) * kThreads + vector) * Width;
  float own[2 * Width] = {};
  if (part < sharing) {
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * sharing + part; row < rows;
         row += static_cast<std::int64_t>(gridDim.x) * sharing) {
      const auto left = *reinterpret_cast<const Vector<T, Width>*>(a + row * columns + at);
      const auto right = b == nullptr ? left : *reinterpret_cast<const Vector<T, Width>*>(b + row * columns + at);
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        own[2 * i] += to_float(left.values[i]);
        own[2 * i + 1] += to_float(left.values[i]) * to_float(right.values[i]);
      }
    }
  }
  for (int i = 0; i < 2 * Width; ++i) {
    parts[threadIdx.x][i] = own[i];
  }
  __syncthreads();
  if (part == 0) {
    for (int i = 0; i < 2 * Width; ++i) {
      float sum = 0.0f;
      for (int other = 0; other < sharing; ++other) {
        sum += parts[other * vectors + vector][i];
      }
      atomicAdd(&sums[2 * at + i], sum);
    }
  }
}

template <class T, int Width>
__global__ void batch_norm_kernel(const T* x, T* y, const float* sums, std::int64_t rows, std::int64_t columns) {
  const std::int64_t at = thread_number() * Width;
  if (at >= rows * columns) {
    return;
  }
  const std::int64_t column = at % columns;
  const float share = 1.0f / rows;
  const auto in = *reinterpret_cast<const Vector<T, Width>*>(x + at);
  Vector<T, Width> out;
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    const float mean = sums[2 * (column + i)] * share;
    const float variance = sums[2 * (column + i) + 1] * share - mean * mean;
    out.values[i] = from_float<T>((to_float(in.values[i]) - mean) * rsqrtf(fmaxf(variance, 0.0f) + 1e-5f));
  }
  *reinterpret_cast<Vector<T, Width>*>(y + at) = out;
}

// For inputs that are already normal, so that mean and scale are 0 and 1.
template <class T, int Width>
__global__ void batch_norm_gradient_kernel(const T* x, const T* dy, T* dx, const float* sums, std::int64_t rows,
                                           std::int64_t columns) {
  const std::int64_t at = thread_number() * Width;
  if (at >= rows * columns) {
    return;
  }
  const std::int64_t column = at % columns;
  const float share = 1.0f / rows;
  const auto in = *reinterpret_cast<const Vector<T, Width>*>(x + at);
  const auto gradients = *reinterpret_cast<const Vector<T, Width>*>(dy + at);
  Vector<T, Width> out;
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    const float sum = sums[2 * (column + i)] * share, products = sums[2 * (column + i) + 1] * share;
    out.values[i] = from_float<T>(to_float(gradients.values[i]) - sum - to_float(in.values[i]) * products);
  }
  *reinterpret_cast<Vector<T, Width>*>(dx + at) = out;
}

// --- The others -------------------------------------------------------------------------------------------------------

template <class T, int Width> __global__ void sum_kernel(const T* x, float* sum, std::int64_t count) {
  float own = 0.0f;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x * Width;
  for (std::int64_t at = thread_number() * Width; at + Width <= count; at += stride) {
    const auto in = *reinterpret_cast<const Vector<T, Width>*>(x + at);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      own += to_float(in.values[i]);
    }
  }
  own = over_team(own, Total());
  if (threadIdx.x == 0) {
    atomicAdd(sum, own);
  }
}

template <class T, int Width>
__global__ void embedding_kernel(const T* table, const int* indices, T* y, std::int64_t count, std::int64_t columns) {
  const std::int64_t at = thread_number() * Width;
  if (at < count) {
    const std::int64_t row = at / columns;
    *reinterpret_cast<Vector<T, Width>*>(y + at) =
        *reinterpret_cast<const Vector<T, Width>*>(table + indices[row] * columns + (at - row * columns));
  }
}

template <class T, int Width>
__global__ void embedding_gradient_kernel(const T* dy, const int* indices, float* table, std::int64_t count,
                                          std::int64_t columns) {
  const std::int64_t at = thread_number() * Width;
  if (at < count) {
    const std::int64_t row = at / columns;
    const auto in = *reinterpret_cast<const Vector<T, Width>*>(dy + at);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      atomicAdd(&table[indices[row] * columns + (at - row * columns) + i], to_float(in.values[i]));
    }
  }
}

// --- Launching --------------------------------------------------------------------------------------------------------

// The threads for a row of so many vectors (a team), and as many teams as fill a block.
dim3 team_for(std::int64_t vectors) {
  unsigned team = 32;
  while (team < 1024 && team * 4 < vectors) {
    team *= 2;
  }
  return dim3(team, team == 32 ? 4 : 1);
}

struct Call {
  const Kernel& kernel;
  const ElementwiseOperands& operands;
  cudaStream_t stream;
  std::int64_t rows, columns;

  std::int64_t count() const { return rows * columns; }
  bool forward() const { return kernel.pass == Pass::forward; }
};

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

template <class T, int Width> void run_rows(const Call& call) {
  const auto* x = static_cast<const T*>(call.operands.x);
  auto* y = static_cast<T*>(call.operands.y);
  auto* z = static_cast<T*>(call.operands.z);
  const dim3 team = team_for(call.columns / Width);
  const auto blocks = static_cast<unsigned>((call.rows + team.y - 1) / team.y);
  const float* gain = call.operands.weights;
  float* statistics = call.operands.statistics;
  if (call.kernel.op == Op::layer_norm) {
    call.forward() ? layer_norm_kernel<T, Width>
                         <<<blocks, team, 0, call.stream>>>(x, y, gain, statistics, call.rows, call.columns)
                   : layer_norm_gradient_kernel<T, Width>
                         <<<blocks, team, 0, call.stream>>>(x, y, z, gain, statistics, call.rows, call.columns);
  } else {
    call.forward()
        ? softmax_kernel<T, Width><<<blocks, team, 0, call.stream>>>(x, y, call.rows, call.columns)
        : softmax_gradient_kernel<T, Width><<<blocks, team, 0, call.stream>>>(x, y, z, call.rows, call.columns);
  }
}

constexpr unsigned kBlocksOfSums = 1024; // several per multiprocessor on any device

template <class T, int Width> void run_columns(const Call& call) {
  const auto* x = static_cast<const T*>(call.operands.x);
  auto* y = static_cast<T*>(call.operands.y);
  auto* z = static_cast<T*>(call.operands.z);
  float* sums = call.operands.statistics;
  const std::int64_t vectors = call.columns / Width;
  const auto across = static_cast<unsigned>((vectors + kThreads - 1) / kThreads);
  const std::int64_t at_once = std::max<std::int64_t>(kThreads / vectors, 1);
  const auto down = static_cast<unsigned>(std::min<std::int64_t>((call.rows + at_once - 1) / at_once,
                                                                 std::max(kBlocksOfSums / across, 1u)));
  const unsigned blocks = blocks_for(call.count() / Width);
  cudaMemsetAsync(sums, 0, sizeof(float) * 2 * call.columns, call.stream);
  if (call.forward()) {
    column_sums_kernel<T, Width>
        <<<dim3(down, across), kThreads, 0, call.stream>>>(x, nullptr, sums, call.rows, call.columns);
    batch_norm_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, sums, call.rows, call.columns);
  } else {
    column_sums_kernel<T, Width>
        <<<dim3(down, across), kThreads, 0, call.stream>>>(y, x, sums, call.rows, call.columns);
    batch_norm_gradient_kernel<T, Width>
        <<<blocks, kThreads, 0, call.stream>>>(x, y, z, sums, call.rows, call.columns);
  }
}

template <class T, int Width> void run_others(const Call& call) {
  auto* x = static_cast<T*>(call.operands.x);
  auto* y = static_cast<T*>(call.operands.y);
  const unsigned blocks = blocks_for(call.count() / Width);
  if (call.kernel.op == Op::sum) {
    cudaMemsetAsync(call.operands.statistics, 0, sizeof(float), call.stream);
    sum_kernel<T, Width>
        <<<std::min(blocks, 2 * kBlocksOfSums), kThreads, 0, call.stream>>>(x, call.operands.statistics, call.count());
  } else if (call.forward()) {
    embedding_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(reinterpret_cast<const T*>(call.operands.table),
                                                                     call.operands.indices, y, call.count(),
                                                                     call.columns);
  } else {
    embedding_gradient_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(
        x, call.operands.indices, call.operands.table, call.count(), call.columns);
  }
}

template <class T> void run_typed(const Call& call) {
  constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));
  const bool even = call.columns % kWidth == 0;
  switch (call.kernel.op) {
  case Op::layer_norm:
  case Op::softmax:
    even ? run_rows<T, kWidth>(call) : run_rows<T, 1>(call);
    break;
  case Op::batch_norm:
    even ? run_columns<T, kWidth>(call) : run_columns<T, 1>(call);
    break;
  case Op::sum:
  case Op::embedding:
    even ? run_others<T, kWidth>(call) : run_others<T, 1>(call);
    break;
  default:
    run_map<T, kWidth>(call);
  }
}

void run_adam(const Call& call) {
  const std::int64_t count = (call.count() + 3) / 4; // buffers consist of whole vectors
  const ElementwiseOperands& on = call.operands;
  adam_kernel<<<blocks_for(count), kThreads, 0, call.stream>>>(
      reinterpret_cast<float4*>(on.weights), reinterpret_cast<const float4*>(on.gradients),
      reinterpret_cast<float4*>(on.first), reinterpret_cast<float4*>(on.second), count);
}

} // namespace

void run_elementwise(const Kernel& kernel, const ElementwiseOperands& operands, cudaStream_t stream) {
  const Call call{kernel, operands, stream, kernel.shape[0], kernel.shape[1]};
  if (kernel.op == Op::adam) {
    run_adam(call);
  } else if (kernel.precision == Precision::bf16) {
    run_typed<__nv_bfloat16>(call);
  } else if (kernel.precision == Precision::fp16) {
    run_typed<__half>(call);
  } else {
    run_typed<float>(call);
  }
}

} // namespace stagecraft::gpu
