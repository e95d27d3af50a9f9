// Kernels: arithmetic and traffic of each op, and the line that names one.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/kernel/kernel.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

Kernel parse(std::string_view text) { return parse_kernel(text, {"shapes.txt", 3, 1}); }

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a product of matrices counts multiplications and additions, and each matrix once", "[kernel]") {
  const Kernel kernel = parse("gemm forward bf16 batch=2 m=3 n=5 k=7");
  CHECK(flops_of(kernel).value == 2 * 2 * 3 * 5 * 7);
  CHECK(bytes_of(kernel).value == 2 * 2 * (3 * 7 + 7 * 5 + 3 * 5));
}

TEST_CASE("a convolution counts its window at every place of its output", "[kernel]") {
  // 8 x 8, window 3, stride 2, padding 1: (8 + 2 - 3) / 2 + 1 = 4 places a side, rounded down. Two groups of 3
  // channels.
  const Kernel kernel = parse("convolution forward fp32 n=2 c=6 h=8 w=8 k=4 r=3 s=3 stride=2 padding=1 groups=2");
  CHECK(flops_of(kernel).value == 2.0 * 2 * 4 * 4 * 4 * 3 * 9);
  CHECK(bytes_of(kernel).value == 4.0 * (2 * 6 * 64 + 2 * 4 * 16 + 4 * 3 * 9));
}

TEST_CASE("attention is two products forward and five backward, of half the pairs where it is causal", "[kernel]") {
  const Kernel kernel = parse("attention forward fp16 batch=2 sequence=4 heads=3 kv_heads=1 head_size=8 causal=0");
  CHECK(flops_of(kernel).value == 2 * 2 * 2 * 3 * 16 * 8);
  CHECK(bytes_of(kernel).value == 2 * 2 * 4 * 8 * (3 + 1 + 1 + 3));
  const Kernel causal =
      parse("attention backward-input fp16 batch=2 sequence=4 heads=3 kv_heads=1 head_size=8 causal=1");
  CHECK(flops_of(causal).value == 2 * 5 * 2 * 3 * 10 * 8);
}

TEST_CASE("memory-bound ops count the tensors that they read and write", "[kernel]") {
  CHECK(bytes_of(parse("add forward fp32 rows=3 columns=5")).value == 3 * 15 * 4);
  CHECK(bytes_of(parse("gelu forward bf16 rows=3 columns=5")).value == 2 * 15 * 2);
  CHECK(bytes_of(parse("gelu backward-input bf16 rows=3 columns=5")).value == 3 * 15 * 2);
  CHECK(bytes_of(parse("adam forward fp32 rows=1 columns=5")).value == 7 * 5 * 4);
  CHECK(bytes_of(parse("launch forward fp32")).value == 0);
}

TEST_CASE("every op's line reads back", "[kernel]") {
  for (const KernelOpRow& row : kKernelOps) {
    Kernel kernel{.op = row.op, .pass = KernelPass::backward_weight, .precision = Precision::tf32};
    for (std::size_t i = 0; i < row.rank(); ++i) {
      kernel.shape[i] = static_cast<double>(i + 1);
    }
    CHECK(row_of(row.op).name == row.name);
    CHECK(parse(to_text(kernel)) == kernel);
  }
}

TEST_CASE("a line that names no kernel is refused with its place", "[kernel]") {
  CHECK(error_of("gem forward bf16 m=1").find("shapes.txt:3:1: unknown kernel 'gem'; did you mean 'gemm'?") == 0);
  CHECK(error_of("gemm forward bf16 batch=1 m=1 n=1 q=1") ==
        "shapes.txt:3:35: 'q' is no dimension of gemm; allowed: batch, m, n, k");
  CHECK(error_of("gemm forward bf16 batch=1 m=1 n=1") == "shapes.txt:3:1: 'k' is missing or 0; allowed: 1 or more");
  CHECK(error_of("gemm forward bf16 batch=1 m=1 m=1 n=1 k=1").find("shapes.txt:3:31") == 0);
  CHECK(error_of("gemm") != "");
}

} // namespace
} // namespace stagecraft
