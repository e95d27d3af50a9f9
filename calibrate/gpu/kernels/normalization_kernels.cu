// Norms and softmax.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/rows.cuh"

namespace stagecraft::gpu {
namespace {

// --- Over the columns of a row
// ----------------------------------------------------------------------------------------

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
__global__ void rms_norm_kernel(const T* x, T* y, const float* gain, float* statistics, std::int64_t rows,
                                std::int64_t columns) {
  const std::int64_t row = team_row();
  if (row >= rows) {
    return;
  }
  float squares = 0.0f;
  over_row<T, Width>(x + row * columns, columns, [&](std::int64_t, const Vector<T, Width>& in) {
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      squares += to_float(in.values[i]) * to_float(in.values[i]);
    }
  });
  const float scale = rsqrtf(over_team(squares, Total()) / columns + 1e-5f);
  over_row<T, Width>(x + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    Vector<T, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      out.values[i] = from_float<T>(to_float(in.values[i]) * scale * gain[at + i]);
    }
    *reinterpret_cast<Vector<T, Width>*>(y + row * columns + at) = out;
  });
  if (threadIdx.x == 0) {
    statistics[row] = scale;
  }
}

template <class T, int Width>
__global__ void rms_norm_gradient_kernel(const T* x, const T* dy, T* dx, const float* gain, const float* statistics,
                                         std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = team_row();
  if (row >= rows) {
    return;
  }
  const float scale = statistics[row];
  float products = 0.0f;
  over_row<T, Width>(dy + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    const auto inputs = *reinterpret_cast<const Vector<T, Width>*>(x + row * columns + at);
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      products += to_float(in.values[i]) * gain[at + i] * to_float(inputs.values[i]) * scale;
    }
  });
  products = over_team(products, Total()) / columns;
  over_row<T, Width>(dy + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    const auto inputs = *reinterpret_cast<const Vector<T, Width>*>(x + row * columns + at);
    Vector<T, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const float normal = to_float(inputs.values[i]) * scale;
      out.values[i] = from_float<T>(scale * (to_float(in.values[i]) * gain[at + i] - normal * products));
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

// --- Column by column: batch norm of images whose channels lie innermost
// ----------------------------------------------

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

// --- Launching
// --------------------------------------------------------------------------------------------------------

template <class T, int Width> void run_rows(const Call& call) {
  const auto* x = static_cast<const T*>(call.operands.x);
  auto* y = static_cast<T*>(call.operands.y);
  auto* z = static_cast<T*>(call.operands.z);
  const dim3 team = team_for(call.columns / Width);
  const auto blocks = static_cast<unsigned>((call.rows + team.y - 1) / team.y);
  const float* gain = call.operands.weights;
  float* statistics = call.operands.statistics;
  if (call.kernel.op == Op::layer_norm) {
    call.forward()
        ? layer_norm_kernel<T, Width><<<blocks, team, 0, call.stream>>>(x, y, gain, statistics, call.rows, call.columns)
        : layer_norm_gradient_kernel<T, Width>
        <<<blocks, team, 0, call.stream>>>(x, y, z, gain, statistics, call.rows, call.columns);
  } else if (call.kernel.op == Op::rms_norm) {
    call.forward()
        ? rms_norm_kernel<T, Width><<<blocks, team, 0, call.stream>>>(x, y, gain, statistics, call.rows, call.columns)
        : rms_norm_gradient_kernel<T, Width>
        <<<blocks, team, 0, call.stream>>>(x, y, z, gain, statistics, call.rows, call.columns);
  } else {
    call.forward()
        ? softmax_kernel<T, Width><<<blocks, team, 0, call.stream>>>(x, y, call.rows, call.columns)
        : softmax_gradient_kernel<T, Width><<<blocks, team, 0, call.stream>>>(x, y, z, call.rows, call.columns);
  }
}

template <class T, int Width> void run_columns(const Call& call) {
  const auto* x = static_cast<const T*>(call.operands.x);
  auto* y = static_cast<T*>(call.operands.y);
  auto* z = static_cast<T*>(call.operands.z);
  float* sums = call.operands.statistics;
  const std::int64_t vectors = call.columns / Width;
  const auto across = static_cast<unsigned>((vectors + kThreads - 1) / kThreads);
  const std::int64_t at_once = std::max<std::int64_t>(kThreads / vectors, 1);
  const auto down = static_cast<unsigned>(
      std::min<std::int64_t>((call.rows + at_once - 1) / at_once, std::max(kBlocksOfSums / across, 1u)));
  const unsigned blocks = blocks_for(call.count() / Width);
  cudaMemsetAsync(sums, 0, sizeof(float) * 2 * call.columns, call.stream);
  if (call.forward()) {
    column_sums_kernel<T, Width>
        <<<dim3(down, across), kThreads, 0, call.stream>>>(x, nullptr, sums, call.rows, call.columns);
    batch_norm_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, sums, call.rows, call.columns);
  } else {
    column_sums_kernel<T, Width><<<dim3(down, across), kThreads, 0, call.stream>>>(y, x, sums, call.rows, call.columns);
    batch_norm_gradient_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(x, y, z, sums, call.rows, call.columns);
  }
}

} // namespace

void run_normalization(const Call& call) {
  with_type(call.kernel.precision, [&](auto value) {
    using T = decltype(value);
    const bool even = call.columns % kWidth<T> == 0;
    if (call.kernel.op == Op::batch_norm) {
      even ? run_columns<T, kWidth<T>>(call) : run_columns<T, 1>(call);
    } else {
      even ? run_rows<T, kWidth<T>>(call) : run_rows<T, 1>(call);
    }
  });
}

} // namespace stagecraft::gpu
