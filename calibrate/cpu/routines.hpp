// The arithmetic of kernels on floats. It is compiled for several instruction sets, of which the program chooses one
// when it starts, so that it runs well on any machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::cpu {

using Index = std::int64_t;

/// C[m,n] = op(A)[m,k] op(B)[k,n], stored row by row; a transposed operand is stored as [k,m] or [n,k]. `lda`, `ldb`,
/// `ldc` are the numbers of elements from one row to the next.
struct Product {
  bool transpose_a = false, transpose_b = false;
  Index m = 1, n = 1, k = 1;
  const float* a = nullptr;
  Index lda = 1;
  const float* b = nullptr;
  Index ldb = 1;
  float* c = nullptr;
  Index ldc = 1;
  bool accumulate = false; ///< adds to C instead of replacing it
};

/// Rows of a matrix: `x` is read, `y` is written, and rows are `stride` elements apart.
struct Rows {
  const float* x = nullptr;
  float* y = nullptr;
  Index rows = 0, columns = 0, stride = 0;
};

inline constexpr float kEpsilon = 1e-5F;    ///< used by normalizations
inline constexpr float kDropShare = 0.125F; ///< share of elements that dropout sets to 0

/// One implementation of all routines. They take `count` adjacent elements; gradients take what forward kept.
struct Routines {
  const char* instructions; ///< "avx512", "avx2", "baseline"
  void (*product)(const Product&);
  void (*add)(const float* x, const float* y, float* z, Index count);
  void (*relu)(const float* x, float* y, Index count);
  void (*relu_gradient)(const float* y, const float* dy, float* dx, Index count);
  void (*gelu)(const float* x, float* y, Index count);
  void (*gelu_gradient)(const float* x, const float* dy, float* dx, Index count);
  /// Also writes the mask, 1 where an element is kept; `first` is the index of the first element.
  void (*dropout)(const float* x, float* y, std::uint8_t* mask, Index first, Index count);
  void (*dropout_gradient)(const std::uint8_t* mask, const float* dy, float* dx, Index count);
  void (*layer_norm)(const Rows&, const float* scale, const float* shift, float* mean, float* inverse);
  /// Adds to the gradients of scale and shift.
  void (*layer_norm_gradient)(const Rows&, const float* dy, const float* scale, const float* mean, const float* inverse,
                              float* d_scale, float* d_shift);
  void (*rms_norm)(const Rows&, const float* scale, float* inverse);
  /// Adds to the gradient of scale.
  void (*rms_norm_gradient)(const Rows&, const float* dy, const float* scale, const float* inverse, float* d_scale);
  void (*swiglu)(const float* gate, const float* up, float* y, Index count);
  void (*swiglu_gradient)(const float* gate, const float* up, const float* dy, float* d_gate, float* d_up, Index count);
  /// Turns one row: its first half x and its second half, which follows, by angles with these cosines and sines.
  void (*rotate)(const float* x, const float* cosine, const float* sine, float direction, float* y, Index half);
  /// Normalises each column over the rows.
  void (*batch_norm)(const Rows&, const float* scale, const float* shift, float* mean, float* inverse);
  void (*batch_norm_gradient)(const Rows&, const float* dy, const float* scale, const float* mean, const float* inverse,
                              float* d_scale, float* d_shift);
  /// Also works in place.
  void (*softmax)(const Rows&);
  /// `rows.x` must hold forward's output.
  void (*softmax_gradient)(const Rows& rows, const float* dy);
  /// Writes the logarithm of the sum of exponentials of each row.
  void (*log_sums)(const Rows& rows, float* totals);
  /// y = exp(x - total) share, the gradient of these.
  void (*log_sums_gradient)(const Rows& rows, const float* totals, float share);
  float (*sum)(const float* x, Index count);
  void (*adam)(const float* gradient, float* weight, float* first, float* second, Index count);
};

/// The best implementation that this processor runs.
const Routines& best_routines();
/// All implementations that this processor runs, the best first.
std::vector<const Routines*> all_routines();

/// The same with products by OpenBLAS, which is loaded now; std::runtime_error if it is not installed.
Routines with_openblas(const Routines& routines);

} // namespace stagecraft::cpu
