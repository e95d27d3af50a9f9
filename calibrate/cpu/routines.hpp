// The arithmetic of kernels on floats, compiled once per instruction set and chosen when the program runs, so that a
// program that is moved neither fails nor runs at half speed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::cpu {

using Index = std::int64_t;

/// C[m,n] = op(A)[m,k] op(B)[k,n], row after row; a transposed operand lies as [k,m] or [n,k]. `lda` and its like are
/// the elements from one row to the next.
struct Product {
  bool transpose_a = false, transpose_b = false;
  Index m = 1, n = 1, k = 1;
  const float* a = nullptr;
  Index lda = 1;
  const float* b = nullptr;
  Index ldb = 1;
  float* c = nullptr;
  Index ldc = 1;
  bool accumulate = false; ///< adds to C
};

/// Rows of a matrix: `x` is read, `y` written, rows lie `stride` elements apart.
struct Rows {
  const float* x = nullptr;
  float* y = nullptr;
  Index rows = 0, columns = 0, stride = 0;
};

inline constexpr float kEpsilon = 1e-5F;    ///< of normalizations
inline constexpr float kDropShare = 0.125F; ///< of what dropout sets to 0

/// One implementation of everything. `count` elements lie one after another. Gradients get what forward kept.
struct Routines {
  const char* instructions; ///< "avx512", "avx2", "baseline"
  void (*product)(const Product&);
  void (*add)(const float* x, const float* y, float* z, Index count);
  void (*relu)(const float* x, float* y, Index count);
  void (*relu_gradient)(const float* y, const float* dy, float* dx, Index count);
  void (*gelu)(const float* x, float* y, Index count);
  void (*gelu_gradient)(const float* x, const float* dy, float* dx, Index count);
  /// Writes the mask too, 1 where kept; `first` numbers the first element.
  void (*dropout)(const float* x, float* y, std::uint8_t* mask, Index first, Index count);
  void (*dropout_gradient)(const std::uint8_t* mask, const float* dy, float* dx, Index count);
  void (*layer_norm)(const Rows&, const float* scale, const float* shift, float* mean, float* inverse);
  /// Adds the gradients of scale and shift to those given.
  void (*layer_norm_gradient)(const Rows&, const float* dy, const float* scale, const float* mean, const float* inverse,
                              float* d_scale, float* d_shift);
  /// Over the rows, each column by itself.
  void (*batch_norm)(const Rows&, const float* scale, const float* shift, float* mean, float* inverse);
  void (*batch_norm_gradient)(const Rows&, const float* dy, const float* scale, const float* mean, const float* inverse,
                              float* d_scale, float* d_shift);
  /// May work in place.
  void (*softmax)(const Rows&);
  /// `rows.x` is forward's output.
  void (*softmax_gradient)(const Rows& rows, const float* dy);
  float (*sum)(const float* x, Index count);
  void (*adam)(const float* gradient, float* weight, float* first, float* second, Index count);
};

/// The best that this processor runs.
const Routines& best_routines();
/// All that this processor runs, best first.
std::vector<const Routines*> all_routines();

/// The same with products by OpenBLAS, opened now; std::runtime_error where it is not installed.
Routines with_openblas(const Routines& routines);

} // namespace stagecraft::cpu
