// Operators of transformers: gated activation, rotary positions, cross-entropy, table look-up.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/rows.cuh"

namespace stagecraft::gpu {
namespace {

// --- SwiGLU: y = silu(gate) up, silu(x) = x / (1 + exp(-x))
// -----------------------------------------------------------

struct Swiglu {
  __device__ float operator()(float gate, float up) const { return gate / (1.0f + __expf(-gate)) * up; }
};

// The gradients of gate and up, from that of the result.
__device__ float2 swiglu_gradient(float gate, float up, float gradient) {
  const float sigmoid = 1.0f / (1.0f + __expf(-gate));
  return {gradient * up * sigmoid * (1.0f + gate * (1.0f - sigmoid)), gradient * gate * sigmoid};
}

template <class T, int Width>
__global__ void swiglu_gradient_kernel(const T* gate, const T* up, const T* dy, T* d_gate, T* d_up,
                                       std::int64_t count) {
  using Values = Vector<T, Width>;
  const std::int64_t at = thread_number() * Width;
  if (at + Width <= count) {
    const Values gates = *reinterpret_cast<const Values*>(gate + at), ups = *reinterpret_cast<const Values*>(up + at);
    const Values in = *reinterpret_cast<const Values*>(dy + at);
    Values of_gate, of_up;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const float2 gradient =
          swiglu_gradient(to_float(gates.values[i]), to_float(ups.values[i]), to_float(in.values[i]));
      of_gate.values[i] = from_float<T>(gradient.x);
      of_up.values[i] = from_float<T>(gradient.y);
    }
    *reinterpret_cast<Values*>(d_gate + at) = of_gate;
    *reinterpret_cast<Values*>(d_up + at) = of_up;
    return;
  }
  for (std::int64_t i = at; i < count; ++i) {
    const float2 gradient = swiglu_gradient(to_float(gate[i]), to_float(up[i]), to_float(dy[i]));
    d_gate[i] = from_float<T>(gradient.x);
    d_up[i] = from_float<T>(gradient.y);
  }
}

// --- Rotary positions: column i and column half + i of a row are a point, turned by the row's position
// ----------------

__global__ void rotary_table_kernel(float2* table, std::int64_t half) {
  const std::int64_t at = thread_number();
  if (at < kPositions * half) {
    const std::int64_t position = at / half, column = at - position * half;
    const float angle =
        static_cast<float>(position) * powf(10000.0f, -static_cast<float>(column) / static_cast<float>(half));
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    table[at] = {cosine, sine};
  }
}

template <class T, int Width>
__global__ void rotary_kernel(T* x, const float2* table, std::int64_t rows, std::int64_t columns, float direction) {
  using Values = Vector<T, Width>;
  const std::int64_t half = columns / 2, vectors = half / Width;
  const std::int64_t thread = thread_number();
  if (thread >= rows * vectors) {
    return;
  }
  const std::int64_t row = thread / vectors, at = (thread - row * vectors) * Width;
  const std::int64_t position = row / kRowsPerPosition % kPositions;
  auto* left = reinterpret_cast<Values*>(x + row * columns + at);
  auto* right = reinterpret_cast<Values*>(x + row * columns + half + at);
  Values a = *left, b = *right;
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    const float2 turn = table[position * half + at + i];
    const float sine = direction * turn.y, one = to_float(a.values[i]), other = to_float(b.values[i]);
    a.values[i] = from_float<T>(one * turn.x - other * sine);
    b.values[i] = from_float<T>(other * turn.x + one * sine);
  }
  *left = a;
  *right = b;
}

// --- Cross-entropy of logits
// ------------------------------------------------------------------------------------------

// statistics[row] becomes the logarithm of the sum of exponentials, statistics[rows + row] the loss. Reads the logits
// once: a sum is scaled anew when a larger logit comes.
template <class T, int Width>
__global__ void cross_entropy_kernel(const T* logits, const int* targets, float* statistics, std::int64_t rows,
                                     std::int64_t columns) {
  const std::int64_t row = team_row();
  if (row >= rows) {
    return;
  }
  float most = Largest::kNeutral, sum = 0.0f;
  over_row<T, Width>(logits + row * columns, columns, [&](std::int64_t, const Vector<T, Width>& in) {
    float largest = most;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      largest = fmaxf(largest, to_float(in.values[i]));
    }
    sum *= __expf(most - largest);
    most = largest;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      sum += __expf(to_float(in.values[i]) - most);
    }
  });
  const float largest = over_team(most, Largest());
  sum = over_team(sum * __expf(most - largest), Total());
  if (threadIdx.x == 0) {
    const float total = largest + __logf(sum);
    statistics[row] = total;
    statistics[rows + row] = total - to_float(logits[row * columns + targets[row]]);
  }
}

// Turns the logits into the gradient of the mean loss.
template <class T, int Width>
__global__ void cross_entropy_gradient_kernel(T* logits, const int* targets, const float* statistics, std::int64_t rows,
                                              std::int64_t columns) {
  const std::int64_t row = team_row();
  if (row >= rows) {
    return;
  }
  const float total = statistics[row], share = 1.0f / rows;
  const std::int64_t target = targets[row];
  over_row<T, Width>(logits + row * columns, columns, [&](std::int64_t at, const Vector<T, Width>& in) {
    Vector<T, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const float probability = __expf(to_float(in.values[i]) - total);
      out.values[i] = from_float<T>((probability - (at + i == target ? 1.0f : 0.0f)) * share);
    }
    *reinterpret_cast<Vector<T, Width>*>(logits + row * columns + at) = out;
  });
}

// --- Look-up in a table
// -----------------------------------------------------------------------------------------------

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

// --- Launching
// --------------------------------------------------------------------------------------------------------

template <class T> void run_swiglu(const Call& call) {
  const ElementwiseOperands& on = call.operands;
  const auto* gate = static_cast<const T*>(on.x);
  const auto* up = static_cast<const T*>(on.y);
  const unsigned blocks = blocks_for((call.count() + kWidth<T> - 1) / kWidth<T>);
  if (call.forward()) {
    map_two_kernel<T, kWidth<T>><<<blocks, kThreads, 0, call.stream>>>(gate, up, static_cast<T*>(on.z), call.count(),
                                                                       Swiglu());
  } else {
    swiglu_gradient_kernel<T, kWidth<T>><<<blocks, kThreads, 0, call.stream>>>(
        gate, up, static_cast<const T*>(on.z), static_cast<T*>(on.u), static_cast<T*>(on.v), call.count());
  }
}

template <class T, int Width> void run_rotary(const Call& call) {
  const unsigned blocks = blocks_for(call.rows * (call.columns / 2 / Width));
  rotary_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(static_cast<T*>(call.operands.x),
                                                                reinterpret_cast<const float2*>(call.operands.table),
                                                                call.rows, call.columns, call.forward() ? 1.0f : -1.0f);
}

template <class T, int Width> void run_cross_entropy(const Call& call) {
  auto* logits = static_cast<T*>(call.operands.x);
  const dim3 team = team_for(call.columns / Width);
  const auto blocks = static_cast<unsigned>((call.rows + team.y - 1) / team.y);
  if (call.forward()) {
    cross_entropy_kernel<T, Width><<<blocks, team, 0, call.stream>>>(logits, call.operands.indices,
                                                                     call.operands.statistics, call.rows, call.columns);
  } else {
    cross_entropy_gradient_kernel<T, Width><<<blocks, team, 0, call.stream>>>(
        logits, call.operands.indices, call.operands.statistics, call.rows, call.columns);
  }
}

template <class T, int Width> void run_embedding(const Call& call) {
  const unsigned blocks = blocks_for(call.count() / Width);
  auto* y = static_cast<T*>(call.operands.y);
  if (call.forward()) {
    embedding_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(
        reinterpret_cast<const T*>(call.operands.table), call.operands.indices, y, call.count(), call.columns);
  } else {
    embedding_gradient_kernel<T, Width><<<blocks, kThreads, 0, call.stream>>>(
        static_cast<const T*>(call.operands.x), call.operands.indices, call.operands.table, call.count(), call.columns);
  }
}

} // namespace

void fill_rotary(float* table, std::int64_t columns, cudaStream_t stream) {
  const std::int64_t half = columns / 2;
  rotary_table_kernel<<<blocks_for(kPositions * half), kThreads, 0, stream>>>(reinterpret_cast<float2*>(table), half);
}

void run_transformer(const Call& call) {
  with_type(call.kernel.precision, [&](auto value) {
    using T = decltype(value);
    const bool even = call.columns % kWidth<T> == 0;
    switch (call.kernel.op) {
    case Op::swiglu:
      run_swiglu<T>(call);
      break;
    case Op::rotary: // both halves of a row must be whole vectors
      call.columns % (2 * kWidth<T>) == 0 ? run_rotary<T, kWidth<T>>(call) : run_rotary<T, 1>(call);
      break;
    case Op::cross_entropy:
      even ? run_cross_entropy<T, kWidth<T>>(call) : run_cross_entropy<T, 1>(call);
      break;
    default:
      even ? run_embedding<T, kWidth<T>>(call) : run_embedding<T, 1>(call);
    }
  });
}

} // namespace stagecraft::gpu
