// Batches of matrix products.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/work.hpp"

namespace stagecraft::cpu {

// Products of a linear layer: forward y = x W, backward dx = dy W' and dW = x' dy, with operands stored as the layer
// stores them. Threads share the rows of a single product, or the rows of all products of a batch.
Work make_gemm(const Kernel& kernel, const Maker& maker) {
  const Index batch = kernel.shape[0], m = kernel.shape[1], n = kernel.shape[2], k = kernel.shape[3];
  Work work;
  Product product;
  product.transpose_a = kernel.pass == gpu::Pass::backward_weight;
  product.transpose_b = kernel.pass == gpu::Pass::backward_input;
  product.n = n;
  product.k = k;
  product.lda = product.transpose_a ? m : k;
  product.ldb = product.transpose_b ? k : n;
  product.ldc = n;
  product.a = maker.read(work, "a", batch * m * k);
  product.b = maker.read(work, "b", batch * k * n);
  product.c = maker.write(work, "c", batch * m * n);
  work.items = batch * m;
  work.run = [=, compute = maker.routines.product](int, Index begin, Index end) {
    for (Index row = begin; row < end;) {
      const Index one = row / m, first = row % m, rows = std::min(end - row, m - first);
      Product part = product;
      part.m = rows;
      part.a += one * m * k + first * (product.transpose_a ? 1 : k);
      part.b += one * k * n;
      part.c += (one * m + first) * n;
      compute(part);
      row += rows;
    }
  };
  return work;
}

} // namespace stagecraft::cpu
